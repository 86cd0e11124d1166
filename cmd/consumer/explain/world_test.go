package explain

// This file builds logs that a real consumer has counted, so that explain is tested against its results.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	ingestcounts "github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// monday is the start of 2100-W10, the window of these tests: far enough in the future not to expire.
var monday = time.Date(2100, 3, 8, 0, 0, 0, 0, time.UTC)

// at returns a time in the window, a number of seconds after its start.
func at(seconds int) time.Time { return monday.Add(time.Duration(seconds) * time.Second) }

const theWindow = "global:weekly:2100-W10"

// world is a Kafka of the test's own, a Redis prefix of its own, and their clients.
type world struct {
	kafka   *kfake.Cluster
	environ []string
	client  *kgo.Client
	redis   *redis.Client
	prefix  string
}

func newWorld(t *testing.T, settings ...string) *world {
	t.Helper()
	cluster, environ := clitest.FakeKafka(t)
	w := &world{kafka: cluster, prefix: testenv.Prefix(t), redis: testenv.RedisClient(t)}
	w.environ = slices.Concat(environ, []string{"STANDINGS_REDIS_ADDRESSES=" + testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX=" + w.prefix}, settings)
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(strings.TrimPrefix(environ[0], "STANDINGS_KAFKA_BROKERS="), ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w.client = client
	return w
}

// says publishes a record to partition 0.
func (w *world) says(t *testing.T, recorded time.Time, value string) {
	t.Helper()
	w.publish(t, &kgo.Record{Topic: "points", Timestamp: recorded, Value: []byte(value)})
}

// earns publishes an event of a member.
func (w *world) earns(t *testing.T, recorded time.Time, member string, points int) {
	t.Helper()
	w.says(t, recorded, fmt.Sprintf(`{"user_id":%q,"points":%d}`, member, points))
}

func (w *world) publish(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	require.NoError(t, w.client.ProduceSync(t.Context(), records...).FirstErr())
}

func (w *world) config(t *testing.T) *config.Config {
	t.Helper()
	file := ""
	for _, pair := range w.environ {
		if path, ok := strings.CutPrefix(pair, "STANDINGS_CONFIG="); ok {
			file = path
		}
	}
	l, err := config.Load(file, w.environ)
	require.NoError(t, err)
	return l.Config
}

// boards returns the standings that the consumer writes.
func (w *world) boards(t *testing.T) *boards.Boards {
	t.Helper()
	m, err := kadm.NewClient(w.client).BrokerMetadata(t.Context())
	require.NoError(t, err)
	all, err := app.NewBoards(w.config(t), w.redis, m.Cluster)
	require.NoError(t, err)
	return all
}

// counts runs a consumer until it has counted everything.
func (w *world) counts(t *testing.T) {
	t.Helper()
	cfg, all := w.config(t), w.boards(t)
	settings, err := cfg.Kafka.Connection()
	require.NoError(t, err)
	transport := app.NewTransport(cfg, settings)
	defer transport.CloseIdleConnections()
	c, err := app.NewConsumer(cfg, settings, transport, all, nil, app.BeforeCounting{}, zap.NewNop(), new(ingestcounts.Stats))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	ends, err := kadm.NewClient(w.client).ListCommittedOffsets(t.Context(), "points")
	require.NoError(t, err)
	want := map[string]string{}
	ends.Each(func(o kadm.ListedOffset) {
		want[ledger.Partition{Topic: o.Topic, Number: int(o.Partition)}.String()] = ledger.At(o.Offset).String()
	})
	require.Eventually(t, func() bool {
		states, errs := all.States(t.Context())
		for i := range states {
			if errs[i] != nil || !maps.Equal(states[i].Ledger, want) {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

// home returns the store of a member's shard.
func (w *world) home(t *testing.T, member string) *ranking.Store {
	t.Helper()
	all := w.boards(t)
	return all.Shards()[all.Of().Of(xxhash.Sum64String(member))]
}

// score returns a member's score on global.
func (w *world) score(t *testing.T, member string) float64 {
	t.Helper()
	score, err := w.redis.ZScore(t.Context(), w.home(t, member).Keys().Listed(theWindow), member).Result()
	require.NoError(t, err)
	return score
}

// finds sets the position of partition 0 in the ledger of a member's shard.
func (w *world) finds(t *testing.T, member, position string) {
	t.Helper()
	require.NoError(t, w.redis.HSet(t.Context(), w.home(t, member).Keys().Ledger(), "points/0", position).Err())
}

// explains executes the command as JSON, and verifies that the text output has the same exit code.
func (w *world) explains(t *testing.T, code int, board, member string, args ...string) *report {
	t.Helper()
	args = append([]string{board, "weekly", member, "--window", "2100-W10"}, args...)
	out, errs := w.executes(t, code, append(args, "--json")...)
	require.Equal(t, code != 0, errs != "")
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	require.Equal(t, code == 0, r.Agree != nil && *r.Agree, out)
	w.executes(t, code, args...)
	return &r
}

// executes executes the command.
func (w *world) executes(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	got, out, errs := clitest.Execute(t, Command, w.environ, append([]string{"explain"}, args...)...)
	require.Equal(t, code, got, out+errs)
	return out, errs
}

// shows executes the command and compares its text output.
func (w *world) shows(t *testing.T, want string, args ...string) {
	t.Helper()
	out, _ := w.executes(t, 0, args...)
	require.Equal(t, strings.TrimPrefix(want, "\n"), out)
}

// results returns the results of the events, in order.
func (r *report) results() (all []string) {
	for _, e := range r.Events {
		all = append(all, strings.TrimSpace(string(e.Result)+" "+string(e.Reason)))
	}
	return all
}

// kinds returns the kinds of the notes.
func (r *report) kinds() (all []string) {
	for _, n := range r.Notes {
		all = append(all, n.Kind)
	}
	return all
}

// scored sets a member's score on global.
func (w *world) scored(t *testing.T, score float64, member string) {
	t.Helper()
	key := w.home(t, member).Keys().Listed(theWindow)
	require.NoError(t, w.redis.ZAdd(t.Context(), key, redis.Z{Score: score, Member: member}).Err())
}
