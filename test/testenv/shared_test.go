package testenv

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, LeakOptions()...) }

func TestTheSharedKafkaKeepsWhatIsProduced(t *testing.T) {
	keepsARecord(t, Kafka(t))
}

func keepsARecord(t *testing.T, k *KafkaServer) {
	t.Helper()
	topic := k.Topic(t, 2, map[string]string{"retention.ms": "-1"})
	client := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic))
	ctx, cancel := context.WithTimeout(t.Context(), 2*hang)
	defer cancel()
	require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord("25 points")).FirstErr())
	fetches := client.PollFetches(ctx)
	require.NoError(t, fetches.Err())
	require.Equal(t, "25 points", string(fetches.Records()[0].Value))
}

func TestATopicGoesWithItsTest(t *testing.T) {
	var topic string
	t.Run("inner", func(t *testing.T) { topic = Topic(t, 1, nil) })
	admin := kadm.NewClient(Client(t))
	require.Eventually(t, func() bool {
		topics, err := admin.ListTopics(t.Context(), topic)
		return err == nil && topics[topic].Err != nil
	}, 2*hang, 50*time.Millisecond)
}

func TestAPrefixGoesWithItsTestAndLeavesOthersAlone(t *testing.T) {
	mine := Prefix(t)
	client := RedisClient(t)
	require.NoError(t, client.Set(t.Context(), mine+":a", 1, 0).Err())
	var other string
	t.Run("inner", func(t *testing.T) {
		other = Prefix(t)
		require.NotEqual(t, mine, other)
		require.NoError(t, client.Set(t.Context(), other+":a", 1, 0).Err())
	})
	require.Zero(t, client.Exists(t.Context(), other+":a").Val())
	require.EqualValues(t, 1, client.Exists(t.Context(), mine+":a").Val())
}

func TestEmbeddedServersStandInWhereNothingElseIs(t *testing.T) {
	nothing(t)
	k, err := startKafka(t.Context())
	require.NoError(t, err)
	t.Cleanup(k.close)
	require.True(t, k.Embedded())
	keepsARecord(t, k)
	r, err := startRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(r.close)
	require.True(t, r.Embedded())
	require.NoError(t, r.Client(t).Set(t.Context(), "a", 1, 0).Err())

	// A server that is handed on by environment is still recognized as embedded.
	t.Setenv(KafkaVariable, k.Addr())
	t.Setenv(RedisVariable, r.Addr())
	given, err := startKafka(t.Context())
	require.NoError(t, err)
	require.Equal(t, k.String(), given.String())
	givenRedis, err := startRedis(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.String(), givenRedis.String())
}

func TestAServerThatIsHandedOnIsStillKnownForHowItWasComeBy(t *testing.T) {
	shared := Redis(t)
	t.Setenv(DemandVariable, "")
	t.Setenv(RedisVariable, shared.Addr())
	t.Setenv(redisSourceVariable, "")
	given, err := startRedis(t.Context())
	require.NoError(t, err)
	t.Setenv(redisSourceVariable, string(shared.source))
	handed, err := startRedis(t.Context())
	require.NoError(t, err)
	if shared.Embedded() {
		require.Equal(t, Embedded, given.source)
	} else {
		require.Equal(t, Given, given.source)
	}
	require.Equal(t, shared.source, handed.source)
}

func TestOnDemandOnlyEmbeddedServersAreUsed(t *testing.T) {
	t.Setenv(DemandVariable, "embedded")
	t.Setenv(KafkaVariable, "")
	t.Setenv(RedisVariable, "")
	k, err := startKafka(t.Context())
	require.NoError(t, err)
	t.Cleanup(k.close)
	r, err := startRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(r.close)
	require.True(t, k.Embedded() && r.Embedded(), "%v; %v", k, r)
}

func TestWhereRealServersAreDemandedEmbeddedOnesAreAFailure(t *testing.T) {
	nothing(t)
	t.Setenv(DemandVariable, "real")
	_, err := startKafka(t.Context())
	require.ErrorContains(t, err, "scripts/kafka-jars "+KafkaVersion+" installs them")
	t.Setenv(KafkaVersionVariable, "3.9.2")
	_, err = startKafka(t.Context())
	require.ErrorContains(t, err, "kafka-3.9.2 (scripts/kafka-jars 3.9.2 installs them)")
	_, err = startRedis(t.Context())
	require.ErrorContains(t, err, "no redis-server or valkey-server on the PATH")
}

// nothing makes this machine look like one with only Go.
func nothing(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		KafkaVariable, kafkaSourceVariable, KafkaImageVariable, KafkaVersionVariable, KafkaJarsVariable,
		RedisVariable, redisSourceVariable, RedisImageVariable, RedisServerVariable, DemandVariable, ContainersVariable,
	} {
		t.Setenv(name, "")
	}
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	t.Setenv("XDG_CACHE_HOME", empty)
}

func TestAServerThatWasNamedAndIsNotThereIsAFailure(t *testing.T) {
	nothing(t)
	t.Setenv(RedisServerVariable, "valkey-server")
	_, err := startRedis(t.Context())
	require.ErrorContains(t, err, "valkey-server")
	t.Setenv(RedisImageVariable, "valkey/valkey:8")
	_, err = startRedis(t.Context())
	require.EqualError(t, err, RedisImageVariable+"=valkey/valkey:8: no containers: make test starts them where it finds Docker")
	t.Setenv(RedisVariable, "127.0.0.1:1")
	_, err = startRedis(t.Context())
	require.ErrorContains(t, err, RedisVariable+"=127.0.0.1:1")
	t.Setenv(KafkaJarsVariable, t.TempDir())
	_, err = startKafka(t.Context())
	require.ErrorContains(t, err, KafkaJarsVariable)
	t.Setenv(KafkaImageVariable, "kafka:latest")
	_, err = startKafka(t.Context())
	require.ErrorContains(t, err, KafkaImageVariable+"=kafka:latest: ")
	t.Setenv(KafkaVariable, "127.0.0.1:1")
	_, err = startKafka(t.Context())
	require.ErrorContains(t, err, KafkaVariable+"=127.0.0.1:1")
}

func TestTheInstalledKafkaIsTheOneThatTestsLookFor(t *testing.T) {
	pom, err := os.ReadFile("../../test/kafka/pom.xml")
	require.NoError(t, err)
	require.Contains(t, string(pom), "<kafka.version>"+KafkaVersion+"</kafka.version>")
}

// ended is a test that records how it ended instead of ending.
type ended struct {
	testing.TB
	skipped, failed string
}

func (e *ended) Helper()                   {}
func (e *ended) Skip(args ...any)          { e.skipped = args[0].(string) }
func (e *ended) Fatalf(f string, _ ...any) { e.failed = f }

func TestWhatIsNotRunIsOnTheList(t *testing.T) {
	t.Setenv(DemandVariable, "")
	list := filepath.Join(t.TempDir(), "list")
	t.Setenv(NotRunVariable, list)
	e := &ended{TB: t}
	NotRun(e, "no LogAppendTime")
	require.Contains(t, e.skipped, "no LogAppendTime")
	require.Empty(t, e.failed)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, "test/testenv TestWhatIsNotRunIsOnTheList: no LogAppendTime\n", string(text))

	t.Setenv(DemandVariable, "real")
	e = &ended{TB: t}
	NotRun(e, "no LogAppendTime")
	require.NotEmpty(t, e.failed)
}

func TestARunHandsItsServersOnAndListsWhatWasNotRun(t *testing.T) {
	sh := "/bin/sh"
	nothing(t)
	var out strings.Builder
	err := Run(t.Context(), &out, &out, []string{sh, "-c",
		`echo "kafka=$STANDINGS_TEST_KAFKA redis=$STANDINGS_TEST_REDIS"; echo "p TestX: no clock: of its own" >>"$STANDINGS_TEST_NOTRUN"
		printf -- '--- FAIL: TestOfP (0.1s)\nFAIL\tgithub.com/standings/standings/p\t0.2s\n'; exit 3`})
	require.ErrorContains(t, err, "exit status 3")
	require.Contains(t, out.String(), "Kafka: embedded, kfake at 127.0.0.1:")
	require.Contains(t, out.String(), "Redis: embedded, miniredis, one for each package\n")
	require.Contains(t, out.String(), "A test's own Kafka: none, not run; Redis: none, not run\n")
	require.Contains(t, out.String(), "No real Redis: STANDINGS_TEST_REDIS is not set; "+
		"no containers: make test starts them where it finds Docker; no redis-server or valkey-server on the PATH\n")
	require.Regexp(t, `kafka=127.0.0.1:\d+ redis=\n`, out.String())
	require.Contains(t, out.String(), "\nNOT RUN: 1 tests (make test LIST=1 lists them)\n     1  no clock\n")
	require.True(t, strings.HasSuffix(out.String(), "\nFAILED: 1\n  p TestOfP\n"), out.String())
}

// An embedded Redis executes one command at a time: packages that shared one would wait for each other.
func TestEachPackageOfARunHasAnEmbeddedRedisOfItsOwn(t *testing.T) {
	t.Setenv(DemandVariable, "")
	t.Setenv(RedisVariable, "")
	t.Setenv(redisSourceVariable, string(Embedded)) // as cmd/testenv sets it, independent of this machine
	one, err := startRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(one.close)
	other, err := startRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(other.close)
	require.True(t, one.Embedded() && other.Embedded(), "%v; %v", one, other)
	require.NotEqual(t, one.Addr(), other.Addr())

	// An embedded Redis that is given is handed on like any other.
	nothing(t)
	t.Setenv(RedisVariable, one.Addr())
	var out strings.Builder
	require.NoError(t, Run(t.Context(), &out, &out, []string{"/bin/sh", "-c", `echo "redis=$STANDINGS_TEST_REDIS"`}))
	require.Contains(t, out.String(), "redis="+one.Addr()+"\n")
	require.Contains(t, out.String(), "Redis: embedded, miniredis at "+one.Addr()+"\n")
}
