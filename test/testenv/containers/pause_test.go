//go:build !nodocker

package containers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPauseIsAskedForUntilTheContainerIsFrozen(t *testing.T) {
	busy := errors.New("Cannot pause container 0b95: OCI runtime pause failed: unable to freeze: unknown")
	for name, c := range map[string]struct {
		answers []error // the last one repeats
		asked   int
		err     error
	}{
		"frozen at once":    {answers: []error{nil}, asked: 1},
		"at the third time": {answers: []error{busy, busy, nil}, asked: 3},
		"never":             {answers: []error{busy}, asked: 10, err: busy},
		"another error":     {answers: []error{busy, context.Canceled}, asked: 2, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 950*time.Millisecond)
				defer cancel()
				asked := 0
				err := untilFrozen(ctx, func() error {
					asked++
					return c.answers[min(asked, len(c.answers))-1]
				})
				require.Equal(t, c.err, err)
				require.Equal(t, c.asked, asked)
			})
		})
	}
}
