// Package harness runs the built consumer as processes against a Kafka and a Redis, and observes the
// results from outside: with clients of its own, the log, signals and the exit code. No code of the
// consumer runs in the test's process.
//
// A Place is private to a test: a topic, its dead letters, a group, a key prefix, and the settings of every
// consumer that is started there.
//
//	place := harness.New(t, harness.Options{Partitions: 3})
//	place.Publish(t, harness.Record(0, `{"user_id":"u","points":5}`))
//	consumer := place.Start(t)
//	place.AwaitCaughtUp(t, time.Minute)
//	consumer.Terminate(t)
//	place.Check(t)
//
// Every wait polls until a deadline; no wait is a fixed sleep.
package harness

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/testenv"
)

// Options configures a Place. The zero value of a field means its default.
type Options struct {
	Kafka *testenv.KafkaServer // default: shared by all tests
	Redis *testenv.RedisServer // default: shared by all tests
	// RedisClient is the test's client for a Redis of more than one server. Then Redis is nil, and the
	// settings tell consumers how to connect.
	RedisClient redis.UniversalClient
	Partitions  int  // default 1
	NoTopic     bool // do not create the topic
	TopicConfig map[string]string
	// Forgetful makes the place keep sums instead of the published records, for very many records.
	Forgetful bool
	// Settings of the consumers by their names in the configuration, such as "lateness" or
	// "periods.weekly.layout".
	Settings map[string]string
}

// Place is a topic, a group and a key prefix of a test's own.
type Place struct {
	Kafka  *testenv.KafkaServer
	Redis  *testenv.RedisServer
	Topic  string
	Group  string
	Prefix string
	// Settings apply to every consumer that is started later, by their names in the configuration.
	Settings map[string]string
	// Banned holds the members who must be hidden, in the form that Bans returns. Tests set it.
	Banned map[string]bool

	client *kgo.Client
	admin  *kadm.Client
	redis  redis.UniversalClient

	first  *Place   // nil: this is the first place
	beside []*Place // set in the first place

	streaming sync.WaitGroup
	test      testing.TB
	forgetful bool

	mu        sync.Mutex
	expected  *oracle.Oracle
	seals     seals // nil: not read yet
	bad       map[oracle.At]Published
	published []Published
	consumers []*Consumer
	kept      []*kgo.Record // dead letters read before their topic was deleted
	excused   []span        // records whose dead letters may have been deleted unseen
}

// New creates a Place. What it leaves on shared servers is removed at the test's end.
func New(t testing.TB, o Options) *Place {
	t.Helper()
	p := &Place{Kafka: o.Kafka, Redis: o.Redis, Prefix: testenv.Unique(t.Name()), Settings: map[string]string{}, bad: map[oracle.At]Published{},
		test: t, forgetful: o.Forgetful}
	if p.Kafka == nil {
		p.Kafka = testenv.Kafka(t)
	}
	if p.Redis == nil && o.RedisClient == nil {
		p.Redis = testenv.Redis(t)
	}
	if n := defaultShards(t); n > 1 {
		p.Settings["redis.shards"] = strconv.Itoa(n)
	}
	maps.Copy(p.Settings, o.Settings)
	p.Topic, p.Group = p.Prefix, p.Prefix
	p.connect(t)
	if p.redis = o.RedisClient; p.redis == nil {
		p.redis = p.Redis.Client(t)
	}
	t.Cleanup(func() { p.clean(t) })
	if !o.NoTopic {
		p.CreateTopic(t, max(o.Partitions, 1), o.TopicConfig)
	}
	return p
}

func (p *Place) connect(t testing.TB) {
	t.Helper()
	p.client = p.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(20_000))
	p.admin = kadm.NewClient(p.client)
}

// CreateTopic creates the place's topic. By default the topic keeps everything, because a test's records
// may have any time.
func (p *Place) CreateTopic(t testing.TB, partitions int, config map[string]string) {
	t.Helper()
	settings := map[string]string{"retention.ms": "-1"}
	maps.Copy(settings, config)
	p.Kafka.CreateTopic(t, p.Topic, partitions, settings)
}

// DeadLetterTopic returns the topic for the place's dead letters.
func (p *Place) DeadLetterTopic() string { return p.Topic + ".dlq" }

// clean removes what the test leaves. It ignores errors: the servers may be unavailable, or private servers
// that end with the test.
func (p *Place) clean(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = p.admin.DeleteTopics(ctx, p.Topic, p.DeadLetterTopic(), p.Topic+".bans", p.Topic+".final", p.Topic+".final.done")
	_ = p.eachKey(ctx, func(key string) { _ = p.redis.Unlink(ctx, key).Err() })
}

// Within is the limit of every wait. It only detects hangs: no test guarantees a speed.
const Within = 3 * time.Minute

// Eventually calls look until it returns an empty text. It fails the test with the last text if that takes
// too long.
func Eventually(t testing.TB, within time.Duration, look func() (wrong string)) {
	t.Helper()
	deadline := time.Now().Add(within)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		wrong := look()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", within, wrong)
		}
		time.Sleep(pause)
	}
}
