// Package harness runs the built consumer as processes against a Kafka and a Redis,
// and sees what came of it from the outside: by a client of its own for either, by
// the log, the signals and the exit code. Nothing of the consumer runs in the test's
// process.
//
// A Place is what a test has to itself: a topic, its dead letters, a group, a key
// prefix, and the settings of every consumer that is started there.
//
//	place := harness.New(t, harness.Options{Partitions: 3})
//	place.Publish(t, harness.Record(0, `{"user_id":"u","points":5}`))
//	consumer := place.Start(t)
//	place.AwaitCaughtUp(t, time.Minute)
//	consumer.Terminate(t)
//	place.Check(t)
//
// Everything waits by looking again until a deadline, never by sleeping for luck.
package harness

import (
	"context"
	"crypto/rand"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/testenv"
)

// Options say what a Place is like. The zero value of a field is its default.
type Options struct {
	Kafka *testenv.KafkaServer // default: the one that all tests share
	Redis *testenv.RedisServer // default: the one that all tests share
	// RedisClient is how the test looks at a Redis that is more than one server: then
	// Redis is left out, and the settings say how consumers reach it.
	RedisClient redis.UniversalClient
	Partitions  int  // default 1
	NoTopic     bool // the topic isn't created
	TopicConfig map[string]string
	// Forgetful places keep sums in place of the records that were published: for
	// very many of them.
	Forgetful bool
	// Settings of the consumers by their names in the configuration: "lateness",
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
	// Settings of every consumer that is started from now on, by their names in the
	// configuration.
	Settings map[string]string
	// Banned are those who have to be hidden, as Bans has them; a test sets it.
	Banned map[string]bool

	client *kgo.Client
	admin  *kadm.Client
	redis  redis.UniversalClient

	first  *Place   // nil: this one is
	beside []*Place // of the first one

	streaming sync.WaitGroup
	test      testing.TB
	forgetful bool

	mu        sync.Mutex
	expected  *oracle.Oracle
	seals     seals // nil: none were read
	bad       map[oracle.At]Published
	published []Published
	consumers []*Consumer
	kept      []*kgo.Record // dead letters whose topic was deleted
	excused   []span        // of records whose letters nobody saw before that
}

// New makes a Place. What it leaves on shared servers goes with the test.
func New(t testing.TB, o Options) *Place {
	t.Helper()
	p := &Place{Kafka: o.Kafka, Redis: o.Redis, Prefix: name(t.Name()), Settings: map[string]string{}, bad: map[oracle.At]Published{},
		test: t, forgetful: o.Forgetful}
	if p.Kafka == nil {
		p.Kafka = testenv.Kafka(t)
	}
	if p.Redis == nil && o.RedisClient == nil {
		p.Redis = testenv.Redis(t)
	}
	if n := DefaultShards(t); n > 1 {
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

// CreateTopic creates the place's topic. Without other settings it keeps everything:
// a test's records may carry any time.
func (p *Place) CreateTopic(t testing.TB, partitions int, config map[string]string) {
	t.Helper()
	settings := map[string]string{"retention.ms": "-1"}
	maps.Copy(settings, config)
	p.Kafka.CreateTopic(t, p.Topic, partitions, settings)
}

// DeadLetterTopic is where the place's bad records go.
func (p *Place) DeadLetterTopic() string { return p.Topic + ".dlq" }

// clean removes what the test leaves. The servers may be away by now, or be a
// private server's that ends with the test: nothing is said of that.
func (p *Place) clean(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = p.admin.DeleteTopics(ctx, p.Topic, p.DeadLetterTopic(), p.Topic+".bans", p.Topic+".final", p.Topic+".final.done")
	_ = p.eachKey(ctx, func(key string) { _ = p.redis.Unlink(ctx, key).Err() })
}

// name is a name that no other test has and that still tells whose it is. It is
// short enough for a key prefix.
func name(test string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	if len(clean) > 48 {
		clean = clean[:48]
	}
	return strings.Trim(clean, "-") + "-" + strings.ToLower(rand.Text()[:10])
}

// Within is how long anything may take. It only catches what hangs: no test promises how fast
// anything is.
const Within = 3 * time.Minute

// Eventually looks until there is nothing to say any more, and fails the test with
// what was said last if that takes too long.
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
