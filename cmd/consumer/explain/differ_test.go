package explain

// This file tests cases in which the log and Redis may differ, and the notes about them.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rules"
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
func sweeps(t *testing.T, settings ...string) (w *world, low, high, hash string) {
	t.Helper()
	w = newWorld(t, settings...)
	low, high = twoByHash()
	w.earns(t, at(1), low, 1)
	w.earns(t, at(2), high, 2)
	w.counts(t)
	before := w.score(t, high)
	w.earns(t, at(3), low, 4)
	w.earns(t, at(4), high, 8)
	w.counts(t)
	before()
	return w, low, high, fmt.Sprintf("%016x", xxhash.Sum64String(high))
}

func TestMembersBelowTheHashOfASweepHaveItsEvents(t *testing.T) {
	w, low, high, hash := sweeps(t)
	require.False(t, *w.explains(t, 1, "global", high).Agree)
	w.finds(t, high, "2..4@"+hash)
	r := w.explains(t, 0, "global", low)
	require.Equal(t, []string{"counted", "counted"}, r.results())
	require.Equal(t, []string{noteSweep}, r.kinds())
	require.Contains(t, r.Notes[0].Text, "and is in it")
	r = w.explains(t, 0, "global", high)
	require.Equal(t, []string{"counted", "not_applied"}, r.results())
	require.Contains(t, r.Notes[0].Text, "isn't in it yet")
	require.Equal(t, hash, r.Hash)
	require.Equal(t, "2..4@"+hash, *r.Partitions[0].Position)
}

func TestASweepIsReadByTheRulesThatItWasBegunBy(t *testing.T) {
	w, low, high, hash := sweeps(t)
	set, err := app.RuleSet(w.config(t))
	require.NoError(t, err)
	w.finds(t, high, "2..4@"+hash+"#"+rules.Fingerprint(set.Text()))
	w.environ = append(w.environ, "STANDINGS_EVENT_FIELDS_POINTS=delta") // under these rules no event has points
	r := w.explains(t, 1, "global", low)
	require.Equal(t, []string{"dead_letter invalid", "counted"}, r.results())
	require.Equal(t, int64(4), *r.Log.Points)
	// If the text of the rules is missing, they cannot be applied.
	require.NoError(t, w.redis.HDel(t.Context(), w.home(t, high).Keys().Rules(), rules.Fingerprint(set.Text())).Err())
	r = w.explains(t, 1, "global", low)
	require.Nil(t, r.Agree)
	require.Contains(t, r.kinds(), noteRules)
	require.Equal(t, []string{"dead_letter invalid", "dead_letter invalid"}, r.results())
}

func TestAnotherConfigurationThanThatOfTheLedgerIsNamed(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	w.environ = append(w.environ, "STANDINGS_EVENT_FIELDS_POINTS=delta")
	r := w.explains(t, 1, "global", "ann")
	require.Nil(t, r.Agree)
	require.Equal(t, []string{noteRules}, r.kinds())
}

func TestATornLedgerCountsAsThePositionBeforeAndSettlesNothing(t *testing.T) {
	w, low, high, _ := sweeps(t)
	w.finds(t, high, "torn:2")
	r := w.explains(t, 0, "global", high)
	require.Equal(t, []string{"counted", "not_applied"}, r.results())
	require.Equal(t, []string{noteTorn}, r.kinds())
	require.Equal(t, "torn:2", *r.Partitions[0].Position)
	require.Nil(t, w.explains(t, 1, "global", low).Agree) // the lower member's piece was written
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
	require.Equal(t, []string{noteLogGone}, r.kinds())
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
}

func TestALogThatEndsBeforeTheLedgerIsNamed(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	w.finds(t, "ann", "7")
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{noteLogShort}, r.kinds())
}

func TestABannedMemberIsExplainedAsHidden(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 5)
	w.earns(t, at(2), "bob", 7)
	w.counts(t)
	require.NoError(t, w.home(t, "ann").Ban(t.Context(), ranking.Ban{Member: "ann"}))
	w.earns(t, at(3), "ann", 5)
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, "hidden", *r.Banned)
	require.Equal(t, []string{noteHidden}, r.kinds())
	require.Equal(t, int64(10), *r.Redis.Points)
	require.Equal(t, int64(1), *r.Rank)
	require.Nil(t, w.explains(t, 0, "global", "bob").Banned)
}

func TestOfAnErasedMemberNothingCounts(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 5)
	w.counts(t)
	require.NoError(t, w.home(t, "ann").Ban(t.Context(), ranking.Ban{Board: "global", Member: "ann", Erased: true}))
	w.earns(t, at(2), "ann", 5)
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, "erased", *r.Banned)
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
	require.Equal(t, []string{noteRefused}, r.kinds())
	require.Equal(t, int64(99_999_992), *r.Redis.Points)
	require.Equal(t, counts{Counted: 2, DeadLetters: 1}, r.Counts)
	require.Empty(t, w.explains(t, 0, "global", "ann").Notes)

	// A rebuild reads all three in one batch and refuses none.
	for i, points := range []int{99_999_999, 5, -7} {
		w.earns(t, at([]int{1, 2, 4}[i]), "twin", points)
	}
	w.counts(t)
	key := w.home(t, "rich").Keys().Listed("global:weekly:2100-W10")
	score := w.redis.ZScore(t.Context(), key, "twin").Val()
	require.NoError(t, w.redis.ZAdd(t.Context(), key, scored(score, "rich")).Err())
	r = w.explains(t, 0, "global", "rich")
	require.Equal(t, []string{"counted", "counted", "counted"}, r.results())
	require.Equal(t, []string{noteRecount}, r.kinds())
	require.Equal(t, counts{Counted: 3}, r.Counts)
	require.NoError(t, w.redis.ZAdd(t.Context(), key, scored(score+1, "rich")).Err())
	require.Nil(t, w.explains(t, 1, "global", "rich").Agree)
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
	require.Equal(t, []string{noteIncomplete}, r.kinds())
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
	before()
	w.finds(t, members[1], "3") // only this shard is behind
	for i := range 3 {
		r := w.explains(t, 0, "global", members[i])
		require.Equal(t, i, *r.Shard)
		require.Equal(t, map[bool][]string{true: {"counted", "counted"}, false: {"counted", "not_applied"}}[i != 1], r.results())
	}
}

func TestAnotherSchemaIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	w.environ = append(w.environ, "STANDINGS_MAX_POINTS=1000")
	code, out, errs := clitest.Execute(t, Command, w.environ, "explain", "global", "weekly", "ann", "--window", "2100-W10")
	require.Equal(t, 2, code, out+errs)
	require.Empty(t, out)
	require.Contains(t, errs, "max_points")
}

func TestALostBoardAndNothingAtAllAreNamed(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{noteNothing}, r.kinds())
	require.Equal(t, []string{"not_applied"}, r.results())
	w.counts(t)
	require.NoError(t, w.redis.Del(t.Context(), w.home(t, "ann").Keys().Listed("global:weekly:2100-W10")).Err())
	r = w.explains(t, 1, "global", "ann")
	require.Equal(t, []string{noteLost}, r.kinds())
	require.Nil(t, r.Agree)
}

func TestAWindowWhoseRetentionIsOverIsNoDifference(t *testing.T) {
	w := newWorld(t, "STANDINGS_START=earliest")
	old := time.Date(2019, 6, 5, 0, 0, 0, 0, time.UTC)
	w.earns(t, old, "ann", 1)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	code, out, errs := clitest.Execute(t, Command, w.environ, "explain", "global", "weekly", "ann", "--window", "2019-W23")
	require.Equal(t, 1, code, out+errs)
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
		require.Contains(t, w.explains(t, 0, "global", "ann").kinds(), noteMissing)
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
	w.shows(t, 0, `
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
		code, out, errs := clitest.Execute(t, Command, w.environ, append([]string{"explain"}, c.args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, c.want)
		require.Empty(t, out)
	}
	for _, away := range []string{"STANDINGS_REDIS_ADDRESSES=", "STANDINGS_KAFKA_BROKERS="} {
		environ := append(w.environ[:len(w.environ):len(w.environ)], away+clitest.ClosedPort(t), "STANDINGS_KAFKA_TIMEOUT=2s")
		code, out, errs := clitest.Execute(t, Command, environ, "explain", "global", "weekly", "ann")
		require.Equal(t, 2, code)
		require.Contains(t, errs, "can't connect to")
		require.Empty(t, out)
	}
	w.environ = append(w.environ, "STANDINGS_KAFKA_TOPICS=nothing")
	code, _, errs := clitest.Execute(t, Command, w.environ, "explain", "global", "weekly", "ann")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "topic nothing")
}
