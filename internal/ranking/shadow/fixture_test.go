package shadow

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
)

func TestMain(m *testing.M) { rankingtest.Main(m) }

const day, retention = rankingtest.Day, rankingtest.Retention

// fixture is a shard with live boards.
type fixture struct{ *rankingtest.Fixture }

func newFixture(t rankingtest.Tester, client *redis.Client, prefix string) *fixture {
	return &fixture{rankingtest.New(t, client, prefix)}
}

func someone(t testing.TB) *fixture {
	t.Helper()
	return &fixture{rankingtest.Someone(t)}
}

// keyed is a store: the live one or a shadow.
type keyed interface {
	Keys() ranking.Keys
	Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error)
}

func beginning(partition int, found string, at int64, origin *ledger.Origin) ledger.StartPosition {
	return ledger.StartPosition{Partition: ledger.Partition{Topic: "events", Number: partition}, Found: found, At: ledger.At(at), Origin: origin}
}

// incomplete lists the partitions whose origin is after the start of a week, as readers do.
func incomplete(origins map[string]string, start int64) (all []string, err error) {
	return ranking.Incomplete(&ledger.State{Origins: origins}, "global", "weekly", start)
}

// redisCPU returns the CPU time that the Redis server has used.
func redisCPU(b *testing.B, client *redis.Client) time.Duration {
	b.Helper()
	info, err := client.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	var sum float64
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if text, ok := strings.CutPrefix(line, name); ok {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				require.NoError(b, err)
				sum += seconds
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}
