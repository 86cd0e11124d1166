package bans

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

const topic = "bans"

// world is a Kafka with a bans topic (franz-go's fake broker).
type world struct {
	*testing.T

	cluster *kfake.Cluster
	client  *kafka.Client
	other   *kgo.Client
}

func newWorld(t *testing.T, topics ...string) *world {
	t.Helper()
	options := []kfake.Opt{kfake.NumBrokers(1)}
	if len(topics) > 0 {
		options = append(options, kfake.SeedTopics(1, topics...))
	}
	cluster, err := kfake.NewCluster(options...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond, MetadataTopics: []string{topic, "points"}}
	t.Cleanup(transport.CloseIdleConnections)
	other, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(other.Close)
	return &world{T: t, cluster: cluster, other: other,
		client: &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Transport: kafkaconn.Robust(transport), Timeout: 10 * time.Second}}
}

// follower returns a follower that runs until the test ends.
func (w *world) follower(log *zap.Logger) *Follower {
	w.Helper()
	f := NewFollower(w.client, topic, log)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { f.Run(ctx) })
	w.Cleanup(func() { cancel(); ended.Wait() })
	return f
}

func (w *world) ready(f *Follower, offset int64) State {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	require.NoError(w, f.Ready(ctx, offset))
	return f.State()
}

// put writes a record as another program would.
func (w *world) put(key string, value []byte) int64 {
	w.Helper()
	r, err := w.other.ProduceSync(w.Context(), &kgo.Record{Topic: topic, Key: []byte(key), Value: value}).First()
	require.NoError(w, err)
	return r.Offset
}

func (w *world) ban(r *Record) int64 {
	w.Helper()
	key, value, err := r.Encode()
	require.NoError(w, err)
	return w.put(string(key), value)
}

func of(k Key) *Record { return &Record{Key: k, Reason: "test", By: "eve", At: at} }

// fake is standings in memory.
type fake struct {
	mu    sync.Mutex
	held  map[Key]Ban
	now   time.Time
	fails int // number of calls of Ban or Unban that still fail
	calls int
}

func (s *fake) change(do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fails > 0 {
		s.fails--
		return errors.New("away")
	}
	do()
	return nil
}

func (s *fake) Ban(_ context.Context, b Ban) error {
	return s.change(func() { s.held[b.Key] = Ban{Key: b.Key, Erased: b.Erased || s.held[b.Key].Erased} })
}

func (s *fake) Unban(_ context.Context, k Key) error { return s.change(func() { delete(s.held, k) }) }

func (s *fake) Banned(context.Context) ([]Ban, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Ban
	for _, b := range s.held {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Ban) int { return a.Compare(b.Key) })
	return all, nil
}

func (s *fake) Now(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, nil
}
