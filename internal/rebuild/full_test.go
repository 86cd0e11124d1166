package rebuild

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/test/testenv"
)

func (p *place) usedMemory() int64 {
	p.t.Helper()
	info, err := p.redis.Info(p.t.Context(), "memory").Result()
	require.NoError(p.t, err)
	_, rest, _ := strings.Cut(info, "used_memory:")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 10, 64)
	require.NoError(p.t, err)
	return n
}

func TestARebuildThatDoesNotFitIntoRedisMakesRoomForTheConsumersAndSaysSo(t *testing.T) {
	const events = 40_000
	p := newPlaceOn(t, testenv.PrivateRedis(t).Client(t), 1, events, events)
	was := p.boards()
	room := func(bytes int64) {
		require.NoError(t, p.redis.ConfigSet(t.Context(), "maxmemory", strconv.FormatInt(bytes, 10)).Err())
	}
	p.job.Watch.Planned = func(*Plan) { room(p.usedMemory() + 1<<20) } // the rebuild needs about five times as much
	_, err := p.job.Run(t.Context())
	var full *shadow.FullError
	require.ErrorAs(t, err, &full)
	require.InDelta(t, full.Max, full.Used, 1<<20)
	require.Greater(t, full.Max, int64(1<<20))
	require.Contains(t, err.Error(), "maxmemory")
	p.nothingLeft()
	require.Equal(t, was, p.boards())

	// A live consumer that waited for memory continues.
	consumer := p.consumer()
	require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", strconv.Itoa(events-500)).Err())
	require.NoError(t, consumer.To(t.Context(), 0, map[string]ledger.Position{topic + "/0": ledger.At(events)}))

	// If there is no memory at all, taking the lock reports it.
	room(1)
	_, err = p.job.Run(t.Context())
	require.ErrorAs(t, err, &full)
}

func TestAHoldOrASwapWithoutRoomEndsTheRebuildToo(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlaceOn(t, testenv.PrivateRedis(t).Client(t), of, 100, 10)
		p.job.From = replay.From{From: start.FromEarliest}
		p.job.Watch.Reading = func(int64, func() int64) func() {
			return func() { require.NoError(t, p.redis.ConfigSet(t.Context(), "maxmemory", "1").Err()) }
		}
		began := time.Now()
		_, err := p.job.Run(t.Context())
		var full *shadow.FullError
		require.ErrorAs(t, err, &full)
		require.Less(t, time.Since(began), soon)
		p.nothingLeft()
	})
}
