package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ranking"
)

// At a first start the metrics are due before anything is written: Redis has lost nothing.
func TestThatNothingHasBegunYetIsNoWarningAndIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		ctx, cancel := context.WithCancel(t.Context())
		results := []error{&ranking.SchemaError{Prefix: "lb"}, &ranking.SchemaError{Prefix: "lb"}, errors.New("refused")}
		looks := 0
		began := time.Now()
		turn{every: time.Hour, what: "count the boards", none: func() {}, look: func(context.Context) error {
			looks++
			if looks > len(results) {
				cancel()
				return nil
			}
			return results[looks-1]
		}}.watch(ctx, nil, zap.New(core))
		require.Equal(t, 1, logs.Len())
		require.Equal(t, "couldn't count the boards; trying again", logs.All()[0].Message)
		require.Equal(t, time.Hour+3*time.Second, time.Since(began).Truncate(time.Second))
	})
}
