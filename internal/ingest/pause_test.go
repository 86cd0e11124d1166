package ingest

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/health"
)

// A worker that pauses moves all shards to the same position, also those for which a batch had no events. It
// reports the pause, applies nothing, and continues afterwards.
func TestAPauseIsBetweenTwoBatchesWithAllShardsLevel(t *testing.T) {
	oneShard(t, "it has three of its own")
	t.Parallel()
	w := newWorld(t, 1)
	fake := newFakeOf(3)
	pause := new(Pause)
	r := w.worker(0, func(c *Config) { c.Standings, c.Pause = fake.standings(), pause })
	at := func() (all []string) {
		fake.do(func() { all = fake.texts(field(0)) })
		return all
	}
	all := func(offset int) func() bool {
		return func() bool { return slices.Equal(at(), slices.Repeat([]string{strconv.Itoa(offset)}, 3)) }
	}
	send := func(n int, members int) {
		for i := range n {
			w.send(0, earned{User: "u" + strconv.Itoa(i%members), Points: 1, At: time.Now().UnixMilli()})
		}
	}
	send(60, 20)
	eventually(t, "they have come to the end", all(60))

	pause.Begin(&health.Waiting{Reason: health.WaitsReshard, Err: errors.New("a reshard")})
	pause.Begin(&health.Waiting{Reason: health.WaitsReshard, Err: errors.New("a reshard by another")}) // the same pause
	eventually(t, "it says that it waits", func() bool {
		send(1, 1) // events that were read before the pause took effect
		return r.status.Line().Reason == health.WaitsReshard
	})
	stood := at()
	require.Equal(t, slices.Repeat(stood[:1], 3), stood, "level, though one member's events are of one shard")
	send(40, 20)
	for range 3 { // several comparisons of the ledgers
		time.Sleep(lookEvery)
		require.Equal(t, stood, at())
		require.Equal(t, health.WaitsReshard, r.status.Line().Reason)
	}

	pause.End()
	pause.End()
	end := int(w.end(topic, 0))
	eventually(t, "it goes on", all(end))
	require.Empty(t, r.status.Line().Reason)
	require.Empty(t, differences(w.want, fake.boards()))
}
