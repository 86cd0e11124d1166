package explain

// This file tests cases in which the log and Redis may differ, and the notes about them.

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
)

// twoByHash returns two members, the one with the lower hash first.
func twoByHash() (low, high string) {
	low, high = "ann", "bob"
	if xxhash.Sum64String(low) > xxhash.Sum64String(high) {
		low, high = high, low
	}
	return low, high
}

// sweeps returns a log with two events of each of two members. The second events are being applied: the
// ledger has the one of the lower member, but not that of the higher one.
func sweeps(t *testing.T) (w *world, low, high, hash string) {
	t.Helper()
	w = newWorld(t)
	low, high = twoByHash()
	w.earns(t, at(1), low, 1)
	w.earns(t, at(2), high, 2)
	w.counts(t)
	before := w.score(t, high)
	w.earns(t, at(3), low, 4)
	w.earns(t, at(4), high, 8)
	w.counts(t)
	w.scored(t, before, high)
	return w, low, high, fmt.Sprintf("%016x", xxhash.Sum64String(high))
}

func TestMembersBelowTheHashOfASweepHaveItsEvents(t *testing.T) {
	w, low, high, hash := sweeps(t)
	require.False(t, *w.explains(t, 1, "global", high).Agree)
	w.finds(t, high, "2..4@"+hash)
	r := w.explains(t, 0, "global", low)
	require.Equal(t, []string{"counted", "counted"}, r.results())
	require.Equal(t, []string{"sweep"}, r.kinds())
	require.Contains(t, r.Notes[0].Text, "and is in it")
	r = w.explains(t, 0, "global", high)
	require.Equal(t, []string{"counted", "not_applied"}, r.results())
	require.Contains(t, r.Notes[0].Text, "isn't in it yet")
	require.Equal(t, hash, r.Hash)
	require.Equal(t, "2..4@"+hash, string(r.Partitions[0].Position))

	// A torn ledger counts as the position before, and settles nothing.
	w.finds(t, high, "torn:2")
	r = w.explains(t, 0, "global", high)
	require.Equal(t, []string{"counted", "not_applied"}, r.results())
	require.Equal(t, []string{"torn"}, r.kinds())
	require.Equal(t, "torn:2", string(r.Partitions[0].Position))
	require.Nil(t, w.explains(t, 1, "global", low).Agree) // the lower member's piece was written
}

func TestAnotherConfigurationOrAnotherLogThanTheLedgersIsNamed(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	w.finds(t, "ann", "7")
	require.Equal(t, []string{"log_short"}, w.explains(t, 0, "global", "ann").kinds())
	w.finds(t, "ann", "1")
	w.environ = append(w.environ, "STANDINGS_EVENT_FIELDS_POINTS=delta")
	r := w.explains(t, 1, "global", "ann")
	require.Nil(t, r.Agree)
	require.Equal(t, []string{"rules"}, r.kinds())
	w.environ = append(w.environ, "STANDINGS_MAX_POINTS=1000") // another schema
	_, errs := w.executes(t, 2, "global", "weekly", "ann", "--window", "2100-W10")
	require.Contains(t, errs, "max_points")
}

func TestALogWhoseBeginningIsGoneIsNamed(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.earns(t, at(i), "ann", 1)
	}
	w.counts(t)
	_, err := kadm.NewClient(w.client).DeleteRecords(t.Context(), kadm.Offsets{"points": {0: {Topic: "points", At: 3}}})
	require.NoError(t, err)
	r := w.explains(t, 1, "global", "ann")
	require.Nil(t, r.Agree)
	require.Equal(t, []string{"log_gone"}, r.kinds())
	require.Contains(t, r.Notes[0].Text, "points/0: the log starts at offset 3")
	require.Equal(t, int64(1), *r.Log.Points)
	require.Equal(t, int64(4), *r.Redis.Points)
	require.True(t, r.Partitions[0].Gone)
}

func TestWhatIsGoneFromBeforeTheWindowDoesNotMatter(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.earns(t, at(-3000+i), "ann", 1)
	}
	w.earns(t, at(5), "ann", 1)
	w.counts(t)
	_, err := kadm.NewClient(w.client).DeleteRecords(t.Context(), kadm.Offsets{"points": {0: {Topic: "points", At: 3}}})
	require.NoError(t, err)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, int64(4), *r.Partitions[0].From)
	require.False(t, r.Partitions[0].Gone, "the group's offsets have the times of what was deleted")
	require.Empty(t, r.Notes)
	w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, TopLevel: true, Err: kerr.GroupAuthorizationFailed, Count: -1})
	w.explains(t, 0, "global", "ann")
}

func TestABannedMemberIsHiddenAndAnErasedOneHasNothing(t *testing.T) {
	w := newWorld(t)
	for i, member := range []string{"ann", "bob", "eve"} {
		w.earns(t, at(i), member, 5)
	}
	w.counts(t)
	require.NoError(t, w.home(t, "ann").Ban(t.Context(), ranking.Ban{Member: "ann"}))
	require.NoError(t, w.home(t, "eve").Ban(t.Context(), ranking.Ban{Board: "global", Member: "eve", Erased: true}))
	w.earns(t, at(3), "ann", 5)
	w.earns(t, at(4), "eve", 5)
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, "hidden", string(r.Banned))
	require.Equal(t, []string{"hidden"}, r.kinds())
	require.Equal(t, []int64{10, 1}, []int64{*r.Redis.Points, *r.Rank})
	require.Empty(t, w.explains(t, 0, "global", "bob").Banned)
	r = w.explains(t, 0, "global", "eve")
	require.Equal(t, "erased", string(r.Banned))
	require.Equal(t, []string{"erased", "erased"}, r.results())
	require.Nil(t, r.Redis)
}

func TestWhatWasRefusedIsKnownByItsDeadLetter(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "rich", 99_999_999)
	w.counts(t)
	w.earns(t, at(2), "rich", 5)
	w.earns(t, at(3), "ann", 5)
	w.counts(t)
	w.earns(t, at(4), "rich", -7)
	w.counts(t)
	r := w.explains(t, 0, "global", "rich")
	require.Equal(t, []string{"counted", "dead_letter overflow", "counted"}, r.results())
	require.Equal(t, []string{"refused"}, r.kinds())
	require.Equal(t, int64(99_999_992), *r.Redis.Points)
	require.Equal(t, counts{Counted: 2, DeadLetters: 1}, r.Counts)
	require.Empty(t, w.explains(t, 0, "global", "ann").Notes)

	// A rebuild reads all three in one batch and refuses none.
	for i, points := range []int{99_999_999, 5, -7} {
		w.earns(t, at([]int{1, 2, 4}[i]), "twin", points)
	}
	w.counts(t)
	score := w.score(t, "twin")
	w.scored(t, score, "rich")
	r = w.explains(t, 0, "global", "rich")
	require.Equal(t, []string{"counted", "counted", "counted"}, r.results())
	require.Equal(t, []string{"recount"}, r.kinds())
	require.Equal(t, counts{Counted: 3}, r.Counts)
	w.scored(t, score+1, "rich")
	require.Nil(t, w.explains(t, 1, "global", "rich").Agree)
}

func TestWithoutDeadLettersNobodyKnowsWhatWasRefused(t *testing.T) {
	w := newWorld(t)
	for i, points := range []int{99_999_999, 5} {
		w.earns(t, at(i), "rich", points)
		w.counts(t)
	}
	w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "points.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r := w.explains(t, 1, "global", "rich")
	require.Nil(t, r.Agree)
	require.Equal(t, []string{"counted", "counted"}, r.results())
	require.Equal(t, []string{"dead_letters", "range"}, r.kinds())
	require.Nil(t, r.Log)
}

func TestEventsFromBeforeTheBoardsBeganDoNotCount(t *testing.T) {
	w := newWorld(t, "STANDINGS_START=latest")
	w.earns(t, at(1), "ann", 5)
	w.counts(t)
	w.earns(t, at(2), "ann", 7)
	w.counts(t)
	// From the facts at the start the window would be complete, because its time is in the future. The test
	// therefore sets the origin to the records' time.
	require.NoError(t, w.redis.HSet(t.Context(), w.home(t, "ann").Keys().Origin(), "points/0", ledger.Origin{Offset: 1, Time: at(2).UnixMilli()}.String()).Err())
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{"before_start", "counted"}, r.results())
	require.Equal(t, []string{"incomplete"}, r.kinds())
	require.Equal(t, int64(7), *r.Redis.Points)
}

func TestOfSeveralShardsTheMembersOwnIsMeant(t *testing.T) {
	w := newWorld(t, "STANDINGS_REDIS_SHARDS=3")
	of := ledger.Shards(3)
	members := map[int]string{}
	for i := 0; len(members) < 3; i++ {
		id := fmt.Sprint("m", i)
		if shard := of.Of(xxhash.Sum64String(id)); members[shard] == "" {
			members[shard] = id
		}
	}
	for i := range 3 {
		w.earns(t, at(i), members[i], 1)
	}
	w.counts(t)
	before := w.score(t, members[1])
	for i := range 3 {
		w.earns(t, at(10+i), members[i], 10)
	}
	w.counts(t)
	w.scored(t, before, members[1])
	w.finds(t, members[1], "3") // only this shard is behind
	for i := range 3 {
		r := w.explains(t, 0, "global", members[i])
		require.Equal(t, i, *r.Shard)
		require.Equal(t, map[bool][]string{true: {"counted", "counted"}, false: {"counted", "not_applied"}}[i != 1], r.results())
	}
}

func TestALostBoardAndNothingAtAllAreNamed(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{"nothing"}, r.kinds())
	require.Equal(t, []string{"not_applied"}, r.results())
	w.counts(t)
	require.NoError(t, w.redis.Del(t.Context(), w.home(t, "ann").Keys().Listed("global:weekly:2100-W10")).Err())
	r = w.explains(t, 1, "global", "ann")
	require.Equal(t, []string{"lost"}, r.kinds())
	require.Nil(t, r.Agree)
}

func TestAWindowWhoseRetentionIsOverIsNoDifference(t *testing.T) {
	w := newWorld(t, "STANDINGS_START=earliest")
	old := time.Date(2019, 6, 5, 0, 0, 0, 0, time.UTC)
	w.earns(t, old, "ann", 1)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	out, errs := w.executes(t, 1, "global", "weekly", "ann", "--window", "2019-W23")
	require.Contains(t, out, "the retention of the window is over")
	require.Contains(t, errs, ", and a note can explain it")
}

func TestATopicOfTheLedgerThatIsNoLongerConfiguredIsReadToo(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	_, err := kadm.NewClient(w.client).CreateTopic(t.Context(), 1, 1, nil, "others")
	require.NoError(t, err)
	w.environ = append(w.environ, "STANDINGS_KAFKA_TOPICS=others")
	w.publish(t, &kgo.Record{Topic: "others", Timestamp: at(2), Value: []byte(`{"user_id":"ann","points":2}`)})
	require.Equal(t, []string{"counted", "not_applied"}, w.explains(t, 0, "global", "ann").results())
	for _, field := range []string{"gone/0", "points/9"} {
		require.NoError(t, w.redis.HSet(t.Context(), w.home(t, "ann").Keys().Ledger(), field, "7").Err())
		require.Contains(t, w.explains(t, 0, "global", "ann").kinds(), "missing")
		require.NoError(t, w.redis.HDel(t.Context(), w.home(t, "ann").Keys().Ledger(), field).Err())
	}
}

func TestOfASeasonWhatLiesBeforeItIsEarlyAndWhatLiesBehindLate(t *testing.T) {
	w := newWorld(t)
	w.environ = append(w.environ, "STANDINGS_CONFIG="+clitest.Config(t, `
periods:
  cup: {start: 2100-03-08T00:00:00Z, end: 2100-03-09T00:00:00Z, lateness: 1h, retention: 60d}
`))
	w.earns(t, at(-5), "ann", 1)
	w.earns(t, at(5), "ann", 2)
	w.earns(t, at(86400), "ann", 4)
	w.says(t, at(86400+3601), `{"user_id":"ann","points":8,"occurred_at":"2100-03-08T23:00:00Z"}`)
	w.counts(t)
	w.shows(t, `
global cup all  [2100-03-08 00:00, 2100-03-09 00:00) UTC  ann

RECORD      RECORD TIME              TIME                     EVENT ID  POINTS  RESULT   WHY
points/0@0  2100-03-07 23:59:55.000  2100-03-07 23:59:55.000  -             +1  early    the period begins at 2100-03-08 00:00:00
points/0@1  2100-03-08 00:00:05.000  2100-03-08 00:00:05.000  -             +2  counted
points/0@3  2100-03-09 01:00:01.000  2100-03-08 23:00:00.000  -             +8  late     the window took records until 2100-03-09 01:00:00
points/0@2  2100-03-09 00:00:00.000  2100-03-09 00:00:00.000  -             +4  late     the period ended at 2100-03-09 00:00:00

1 event counted, 2 late, 1 early

                    RANK  POINTS  REACHED AT
the events come to             2  2100-03-08 00:00:05.00
Redis has              1       2  2100-03-08 00:00:05.00

They agree.
`, "global", "cup", "ann", "--window", "all")
}

// twelve publishes a batch of twelve events of ann that takes more than 9 MiB to decompress.
func (w *world) twelve(t *testing.T, recorded time.Time) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Second),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()), kgo.ProducerBatchMaxBytes(16<<20))
	require.NoError(t, err)
	defer client.Close()
	var all []*kgo.Record
	for range 12 {
		value := fmt.Sprintf(`{"user_id":"ann","points":100,"pad":"%s"}`, strings.Repeat("x", 1<<20-100))
		all = append(all, &kgo.Record{Topic: "points", Timestamp: recorded, Value: []byte(value)})
	}
	require.NoError(t, client.ProduceSync(t.Context(), all...).FirstErr())
}

func TestABatchThatIsTooLargeIsNamedByItsOffsets(t *testing.T) {
	w := newWorld(t, "STANDINGS_FOLD_MEMORY=44MiB")
	w.earns(t, at(1), "ann", 25)
	w.twelve(t, at(2))
	w.twelve(t, at(-86400))    // in the week before
	w.twelve(t, at(8*86400+1)) // in the week after, when this window accepts no more events
	w.earns(t, at(8*86400+2), "bob", 1)
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{"counted"}, r.results())
	require.Equal(t, []string{"batch"}, r.kinds())
	require.Regexp(t, `^points/0: offsets 1 to 12 can't be read, and don't count: the snappy record batch up to offset 12 takes 1\d{7} bytes to decompress, `+
		`and fold_memory allows 9437184. Events of this member may be among them$`, r.Notes[0].Text)
	environ := w.environ
	w.environ = append(w.environ, "STANDINGS_FOLD_MEMORY=256MiB") // explain can read it
	r = w.explains(t, 0, "global", "ann", "--limit", "0")
	require.Equal(t, counts{Counted: 1, DeadLetters: 12}, r.Counts)
	require.Equal(t, "dead_letter too_large", r.results()[1])
	require.Equal(t, []string{"batch"}, r.kinds())
	require.Equal(t, "12 events of this member in record batches that a consumer had too little memory to read (too_large): consumer rebuild counts them", r.Notes[0].Text)
	w.environ = environ
	w.redis.Del(t.Context(), w.home(t, "ann").Keys().Listed("global:weekly:2100-W10"))
	require.Nil(t, w.explains(t, 1, "global", "ann").Agree)
}

func TestAQuotaIsWaitedOutAndSaidOnce(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	var fetches atomic.Int64
	w.kafka.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		r := q.ResponseKind().(*kmsg.FetchResponse)
		r.ThrottleMillis = 20
		return r, nil, fetches.Add(1)%3 > 0
	})
	out, errs := w.executes(t, 0, "global", "weekly", "ann", "--window", "2100-W10")
	require.Equal(t, 1, strings.Count(errs, "a quota of Kafka's"), errs)
	require.Contains(t, out, "1 event counted")
}

func TestWhatIsWrongWithTheCommandLineOrTheServersIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--limit must be at least 0 (0: all)", []string{"global", "weekly", "ann", "--limit", "-1"}},
		{"1 to 256 bytes, not 257", []string{"global", "weekly", strings.Repeat("x", 257)}},
		{"is not a board name", []string{"a b", "weekly", "ann"}},
		{"use daily, weekly,", []string{"global", "wekly", "ann"}},
		{"3 arguments, not 1", []string{"global"}},
		{"use the form 2026-W47", []string{"global", "weekly", "ann", "--window", "2100"}},
	} {
		out, errs := w.executes(t, 2, c.args...)
		require.Contains(t, errs, c.want)
		require.Empty(t, out)
	}
	own := w.environ
	for _, try := range [][2]string{
		{"STANDINGS_REDIS_ADDRESSES=" + clitest.ClosedPort(t), "can't connect to"},
		{"STANDINGS_KAFKA_BROKERS=" + clitest.ClosedPort(t), "can't connect to"},
		{"STANDINGS_KAFKA_TOPICS=nothing", "topic nothing"},
	} {
		w.environ = append(own[:len(own):len(own)], try[0], "STANDINGS_KAFKA_TIMEOUT=2s")
		out, errs := w.executes(t, 2, "global", "weekly", "ann")
		require.Contains(t, errs, try[1])
		require.Empty(t, out)
	}
}
