package rebuild

// Live ledgers at positions that no rebuild reaches.

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
)

// The hashes of shard 2 of 5 are in [6666666666666667, 999999999999999a).
const below, beyond = "0..40@6000000000000000", "0..40@a000000000000000"

func TestALedgerThatStaysWhereNoSweepOfItsShardCanBeEndsTheRebuildWithAllThatIsKnown(t *testing.T) {
	for _, text := range []string{below, beyond} {
		t.Run(text, func(t *testing.T) {
			p := newPlace(t, 5, 40)
			p.job.Compare = true // so that it holds ingestion
			p.job.patience.standstill = 500 * time.Millisecond
			p.spoil()
			was := p.boards()
			require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", text).Err())
			began := time.Now()
			r, err := p.job.Run(t.Context())
			require.Less(t, time.Since(began), within)
			unreachable, ok := errors.AsType[*replay.UnreachableError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, text, unreachable.Until.String())
			for _, part := range []string{"shard 2 of 5", topic + "/0 is at " + text, "the rebuild at 0", "6666666666666667", "9999999999999999", "delete the ledger"} {
				require.ErrorContains(t, err, part)
			}
			last := p.notes[len(p.notes)-1]
			for _, part := range []string{"shard 2 of 5", text, "waiting"} {
				require.Contains(t, last, part)
			}
			require.Less(t, r.Shards[2].Holds, 8, "each wait is longer than the one before")
			require.Equal(t, []int{0, 1}, p.swappedShards(r))
			now := p.boards()
			for _, name := range p.redis.HKeys(t.Context(), p.key("windows")).Val() {
				require.Equal(t, was[p.key(name)], now[p.key(name)])
			}
			require.Equal(t, text, p.position(2))
			p.nothingLeft()
		})
	}
}

// A consumer finishes the sweep from there.
func TestALedgerThatGoesOnFromWhereNoSweepOfItsShardCanBeIsFollowed(t *testing.T) {
	for _, text := range []string{below, beyond} {
		t.Run(text, func(t *testing.T) {
			p := newPlace(t, 5, 40)
			p.job.Compare = true // so that it holds ingestion
			was := p.boards()
			require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", text).Err())
			note := p.job.Watch.Note
			p.job.Watch.Note = func(line string) {
				note(line)
				if strings.Contains(line, "waiting") {
					p.standsAt(2, ledger.At(40))
				}
			}
			r, err := p.job.Run(t.Context())
			require.NoError(t, err)
			require.True(t, r.Swapped)
			require.Contains(t, strings.Join(p.notes, "\n"), "waiting")
			require.Equal(t, was, p.boards())
			p.nothingLeft()
		})
	}
}

func TestARebuildThatWaitsForALedgerToGoOnEndsWithItsContext(t *testing.T) {
	p := newPlace(t, 5, 40)
	p.job.Compare = true // so that it holds ingestion
	p.job.patience.standstill = time.Hour
	require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", below).Err())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.job.Watch.Note = func(line string) {
		if strings.Contains(line, "waiting") {
			stop()
		}
	}
	began := time.Now()
	_, err := p.job.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), within)
	p.nothingLeft()
}
