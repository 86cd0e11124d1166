package topic

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/test/testenv"
)

// BenchmarkPublish publishes a window of a million standings from Redis, in one transaction.
//
//	go test -run=^$ -bench=Publish -benchtime=1x ./internal/archive/topic
func BenchmarkPublish(b *testing.B) {
	const members = 1_000_000
	f := newFixture(b, testenv.Kafka(b), 1, "", 1)
	f.fillMany(members)
	f.MakeFinal()
	c := f.config()
	c.Log = zap.NewNop()
	for b.Loop() {
		p := New(c)
		began := time.Now()
		require.NoError(b, p.Pass(b.Context()))
		require.EqualValues(b, members, p.Reached().Standings)
		b.ReportMetric(members/time.Since(began).Seconds(), "standings/s")
		b.StopTimer()
		forget(f, f.Listed()+":1")
		b.StartTimer()
	}
}

// fillMany adds very many members of one shard.
func (f *fixture) fillMany(members int) {
	f.t.Helper()
	f.Fill(1)
	s := f.Shards()[0]
	for i := 0; i < members-1; i += 1000 {
		var all []redis.Z
		for j := i; j < min(i+1000, members-1); j++ {
			score, err := f.Layout.Encode(codec.Tuple{int64(j % 100_000)}, int64(j%20))
			require.NoError(f.t, err)
			all = append(all, redis.Z{Score: score, Member: fmt.Sprintf("a-member-of-some-length-%d", j)})
		}
		require.NoError(f.t, f.Redis.ZAdd(f.t.Context(), s.Keys().Listed(f.Listed()), all...).Err())
	}
}
