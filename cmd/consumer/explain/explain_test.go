package explain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/clitest"
)

func TestEveryEventOfAMemberIsListedWithWhatBecameOfIt(t *testing.T) {
	w := newWorld(t)
	w.says(t, at(5), `{"event_id":"a","user_id":"ann","points":25}`)
	w.earns(t, at(6), "bob", 7)
	w.says(t, at(10), `{"event_id":"b\u001b","user_id":"ann","points":-5,"occurred_at":"2100-03-08T00:00:07.123Z"}`)
	w.says(t, at(11), `{"user_id":"ann","points":"5"}`)
	w.says(t, at(12), `{"user_id":"ann","points":1,"board":"eu"}`)
	w.says(t, at(13), `{"user_id":"ann","points":1,"occurred_at":"2100-03-07T23:59:59.999Z"}`)
	w.says(t, at(14), `{"user_id":"ann","points":1,"board":["a b"]}`)
	w.publish(t, &kgo.Record{Topic: "points", Partition: 2, Timestamp: at(20), Value: []byte(`{"user_id":"ann","points":1000,"board":["eu","global"]}`)})
	// a week and a day after the window; the lateness is one day
	w.says(t, at(8*86400+1), `{"user_id":"ann","points":3,"occurred_at":"2100-03-08T00:00:30Z"}`)
	w.counts(t)
	w.earns(t, at(40), "ann", 9)
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  ann

RECORD      RECORD TIME              TIME                     EVENT ID  POINTS  RESULT       WHY
points/0@0  2100-03-08 00:00:05.000  2100-03-08 00:00:05.000  a            +25  counted
points/0@2  2100-03-08 00:00:10.000  2100-03-08 00:00:07.123  b\x1b         -5  counted
points/0@3  2100-03-08 00:00:11.000  2100-03-08 00:00:11.000  -              -  dead letter  invalid: points at byte 26 is a number in quotes: "5"
points/0@6  2100-03-08 00:00:14.000  2100-03-08 00:00:14.000  -              -  dead letter  unknown_board: board at byte 37 is not a board's name: "a b"
points/2@0  2100-03-08 00:00:20.000  2100-03-08 00:00:20.000  -         +1,000  counted
points/0@7  2100-03-16 00:00:01.000  2100-03-08 00:00:30.000  -             +3  late         the window took records until 2100-03-16 00:00:00
points/0@8  2100-03-08 00:00:40.000  2100-03-08 00:00:40.000  -             +9  not applied  behind the ledger

3 events counted, 1 late, 2 dead-lettered, 1 not applied yet

                    RANK  POINTS  REACHED AT
the events come to         1,020  2100-03-08 00:00:20.00
Redis has              1   1,020  2100-03-08 00:00:20.00

They agree.
`, "global", "weekly", "ann", "--window", "2100-W10")
	r := w.explains(t, 0, "global", "ann", "--limit", "2")
	require.Equal(t, []string{"late", "not_applied"}, r.results())
	require.Equal(t, int64(5), r.LeftOut)
	require.Equal(t, counts{Counted: 3, Late: 1, DeadLetters: 2, NotApplied: 1}, r.Counts)
	require.Equal(t, int64(1020), *r.Log.Points)
	require.Len(t, w.explains(t, 0, "global", "ann", "--limit", "0").Events, 7)
	require.Equal(t, []string{"counted", "dead_letter unknown_board", "counted"}, w.explains(t, 0, "eu", "ann").results())
}

func TestAStandingThatAnotherProgramWroteDiffersInPointsOrTime(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(5), "ann", 25)
	w.earns(t, at(5), "bob", 25)
	w.counts(t)
	ann, bob := w.score(t, "ann"), w.score(t, "bob")
	w.earns(t, at(6), "ann", 1)
	w.earns(t, at(9), "bob", 1)
	w.earns(t, at(9), "bob", -1)
	w.counts(t)
	w.explains(t, 0, "global", "ann")
	require.Equal(t, "2100-03-08T00:00:09.000Z", w.explains(t, 0, "global", "bob").Log.ReachedAt)
	w.scored(t, ann, "ann")
	w.scored(t, bob, "bob")
	r := w.explains(t, 1, "global", "ann")
	require.False(t, *r.Agree)
	require.Equal(t, []int64{26, 25}, []int64{*r.Log.Points, *r.Redis.Points})
	require.Empty(t, r.Notes)
	r = w.explains(t, 1, "global", "bob")
	require.False(t, *r.Agree)
	require.Equal(t, *r.Log.Points, *r.Redis.Points)

	r = w.explains(t, 0, "global", "a member without events")
	require.Nil(t, r.Log)
	require.Nil(t, r.Redis)
	require.Nil(t, r.Rank)
	require.Empty(t, r.Events)
}

func TestBoardsByOtherRulesAreExplainedByThem(t *testing.T) {
	w := newWorld(t)
	w.environ = append(w.environ, "STANDINGS_CONFIG="+clitest.Config(t, `
event: {fields: {stage: run.stage}}
boards:
  global: {}
  arena: {score: best, fields: [{name: stage, max: 999}, {name: revives, max: 99, order: fewest}]}
  elo: {score: last, fields: [{name: elo, max: 99999999}]}
  medals: {score: sum, fields: [{name: gold, max: 99}, {name: silver, max: 99}]}
`))
	for i, run := range [][2]int{{7, 3}, {9, 5}, {9, 2}, {9, 2}, {8, 0}} {
		w.says(t, at(10+i), fmt.Sprintf(`{"user_id":"ann","run":{"stage":%d},"revives":%d,"board":"arena"}`, run[0], run[1]))
	}
	// The last two are within a tick of 10 ms, so the greater tuple counts.
	for at, elo := range map[string]int{"09": 1600, "09.999": 1700, "10.001": 1500, "10.005": 900} {
		w.says(t, monday.Add(time.Minute), fmt.Sprintf(`{"user_id":"ann","elo":%d,"board":["elo","global"],"points":1,"occurred_at":"2100-03-08T00:00:%sZ"}`, elo, at))
	}
	w.says(t, at(20), `{"user_id":"ann","gold":1,"silver":4,"board":"medals"}`)
	w.says(t, at(21), `{"user_id":"ann","gold":1,"silver":-1,"board":"medals"}`)
	w.counts(t)
	r := w.explains(t, 0, "arena", "ann")
	require.Equal(t, []string{"counted", "counted", "counted", "counted", "counted"}, r.results())
	require.Equal(t, "2100-03-08T00:00:12.000Z", r.Log.ReachedAt)
	r = w.explains(t, 0, "elo", "ann")
	require.Equal(t, "2100-03-08T00:00:10.000Z", r.Log.ReachedAt)
	require.Equal(t, int64(10), r.TickMS)
	require.Equal(t, int64(4), *w.explains(t, 0, "global", "ann").Log.Points)
	w.explains(t, 0, "medals", "ann")
	w.shows(t, `
medals weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  ann

RECORD       RECORD TIME              TIME                     EVENT ID  FIELDS             RESULT   WHY
points/0@9   2100-03-08 00:00:20.000  2100-03-08 00:00:20.000  -         gold 1, silver 4   counted
points/0@10  2100-03-08 00:00:21.000  2100-03-08 00:00:21.000  -         gold 1, silver -1  counted

2 events counted

                    RANK  FIELDS            REACHED AT
the events come to        gold 2, silver 3  2100-03-08 00:00:21.000
Redis has              1  gold 2, silver 3  2100-03-08 00:00:21.000

They agree.
`, "medals", "weekly", "ann", "--window", "2100-W10")
}

func TestARepeatOfAnEventFromBeforeTheWindowIsADuplicate(t *testing.T) {
	w := newWorld(t, "STANDINGS_EVENT_DUPLICATES=3")
	w.says(t, at(-3600), `{"event_id":"a","user_id":"ann","points":1}`) // in the week before
	w.says(t, at(5), `{"event_id":"a","user_id":"ann","points":2}`)
	w.says(t, at(6), `{"event_id":"b","user_id":"ann","points":4}`)
	w.says(t, at(7), `{"event_id":"b","user_id":"bob","points":8}`)
	w.says(t, at(8), `{"event_id":"c","user_id":"bob","points":8}`)
	w.says(t, at(9), `{"event_id":"b","user_id":"ann","points":16}`)
	w.says(t, at(10), `{"event_id":"c","user_id":"bob","points":8}`)
	w.says(t, at(11), `{"event_id":"c","user_id":"bob","points":8}`)
	w.says(t, at(12), `{"event_id":"c","user_id":"bob","points":8}`)
	w.says(t, at(13), `{"event_id":"b","user_id":"ann","points":32}`) // four offsets later
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{"duplicate", "counted", "duplicate", "counted"}, r.results())
	require.Equal(t, int64(36), *r.Log.Points)
	require.Equal(t, int64(1), *r.Partitions[0].From)
}

func TestCloudEventsAndBrokenRecordsAreRead(t *testing.T) {
	w := newWorld(t, "STANDINGS_EVENT_FIELDS_USER_ID=player.id")
	w.publish(t, &kgo.Record{Topic: "points", Timestamp: at(9), Value: []byte(`{"player":{"id":"ann"},"points":5}`), Headers: []kgo.RecordHeader{
		{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_id", Value: []byte("ce-1")}, {Key: "ce_time", Value: []byte("2100-03-08T00:00:03Z")}, {Key: "content-type", Value: []byte("application/json")},
	}})
	for key, seconds := range map[string]int{"ann": 9, "bob": 9, "": -9} {
		w.publish(t, &kgo.Record{Topic: "points", Timestamp: at(seconds), Key: []byte(key), Value: []byte(`{"user_id":`)})
	}
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{"counted", "dead_letter malformed"}, r.results())
	e := r.Events[0]
	require.Equal(t, "ce-1", string(e.ID))
	require.Equal(t, []int64{at(9).UnixMilli(), at(3).UnixMilli()}, []int64{int64(e.Recorded), int64(e.Time)})
	require.Equal(t, int64(1), r.Unread)
	require.Contains(t, r.kinds(), "unread")
}
