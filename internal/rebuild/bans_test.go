package rebuild

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADryRunLeavesTheBansOfTheLiveBoards(t *testing.T) {
	p := newPlace(t, 1, 20)
	p.job.DryRun = true
	p.job.Bans = func(context.Context) error {
		t.Error("it changes the live boards")
		return nil
	}
	_, err := p.job.Run(t.Context())
	require.NoError(t, err)
}
