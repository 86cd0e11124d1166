package start

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// marks returns a trail of pairs: offset, time, offset, time, …
func marks(pairs ...int64) (t trail.Trail) {
	for i := 0; i < len(pairs); i += 2 {
		t.Add(pairs[i], pairs[i+1])
	}
	return t
}

func TestTheTimesOfWhatWasBeforeAnOffsetAreBoundedByTheLowestOfWhatHolds(t *testing.T) {
	const hour = int64(3_600_000)
	const now = 1000 * hour
	word := func(ms int64) *int64 { return &ms }
	created := func(at int64) First { return First{Time: at} }
	appended := func(at int64) First { return First{Time: at, Appended: true} }
	for _, c := range []struct {
		name     string
		offset   int64
		trail    trail.Trail
		first    First
		disorder *int64
		want     int64
	}{
		{"from offset 0 nothing is missing", 0, marks(10, hour), created(9 * hour), word(0), 0},
		{"nobody knows", 10, trail.Trail{}, created(hour), nil, now},
		{"nobody knows, and the log is empty", 10, trail.Trail{}, First{None: true}, nil, now},
		{"an old record at the head of the log proves nothing", 10, trail.Trail{}, created(1), nil, now},
		{"the trail, at the offset", 10, marks(10, 7*hour, 20, 9*hour), created(1), nil, 7 * hour},
		{"the trail, by the first mark after it", 11, marks(10, 7*hour, 20, 9*hour), created(1), nil, 9 * hour},
		{"the trail says that none had a time", 3, marks(4, 0), created(hour), nil, 0},
		{"the trail ends before it", 30, marks(10, 7*hour, 20, 9*hour), created(1), nil, now},
		{"the trail ends before it, and knows of later times than the clock", 30, marks(20, 2*now), created(1), nil, 2 * now},
		{"the trail, though that is later than the clock", 20, marks(20, 2*now), created(1), nil, 2 * now},
		{"the broker's times", 10, trail.Trail{}, appended(5 * hour), nil, 5 * hour},
		{"the broker's times, the trail knowing less", 10, marks(20, 9*hour), appended(5 * hour), nil, 5 * hour},
		{"the trail, the broker's times knowing less", 10, marks(20, 4*hour), appended(5 * hour), nil, 4 * hour},
		{"the operator's word", 10, trail.Trail{}, created(5 * hour), word(hour), 6 * hour},
		{"the operator's word that times never go back", 10, trail.Trail{}, created(5 * hour), word(0), 5 * hour},
		{"the operator's word, the trail knowing less", 10, marks(20, 9*hour), created(5 * hour), word(hour), 6 * hour},
		{"the trail, the operator's word saying less", 10, marks(20, 5*hour), created(5 * hour), word(hour), 5 * hour},
		{"the operator's word, and no record to go by", 10, trail.Trail{}, First{None: true}, word(hour), now},
		{"the operator's word, and a record without a time", 10, trail.Trail{}, created(0), word(hour), now},
		{"a time that would overflow", 10, trail.Trail{}, created(math.MaxInt64 - 5), word(hour), math.MaxInt64},
	} {
		j := Judge{Now: now, MaxFuture: 300, Disorder: c.disorder}
		latest, _ := j.Latest(c.offset, &c.trail, c.first)
		require.Equal(t, c.want, latest, c.name)
	}
}

func TestAnOriginLiesBehindAllThatMayBeMissing(t *testing.T) {
	j := Judge{MaxFuture: 300}
	require.Equal(t, ledger.Origin{}, j.Origin(0, 0))
	require.Equal(t, ledger.Origin{Offset: 7}, j.Origin(7, 0), "records were there, and none had a time")
	// A record of time 1000 may have an event of time 1300, which a window that starts at 1300 accepts.
	require.Equal(t, ledger.Origin{Offset: 7, Time: 1301}, j.Origin(7, 1000))
	require.Equal(t, ledger.Origin{Offset: 7, Time: math.MaxInt64}, j.Origin(7, math.MaxInt64-2))
}

func TestWhereATopicBeginsAndFromWhenItsEventsAreIn(t *testing.T) {
	const asked, future, now, unknown = int64(1_000_000), int64(300), int64(5_000_000), int64(5_000_301)
	whole := func(since, at int64) Beginning {
		return Beginning{kafkaconn.Log{Start: 0, End: 90}, since, First{Time: at}, trail.Trail{}, 0}
	}
	trimmed := func(since, at int64, t trail.Trail) Beginning {
		return Beginning{kafkaconn.Log{Start: 10, End: 90}, since, First{Time: at}, t, 0}
	}
	none := First{None: true}
	type want struct{ at, time int64 }
	all, end := want{0, 0}, want{90, unknown}
	for _, c := range []struct {
		name                           string
		b                              Beginning
		window, earliest, latest, time want
	}{
		{"a log from 0, all of it later than asked", whole(0, asked+5), all, all, end, all},
		{"a log from 0 that reaches the time", whole(40, asked-5), want{40, asked + 300}, all, end, want{40, asked + 300}},
		{"a log from 0, all of it before", whole(-1, asked-5), want{90, asked + 300}, all, end, want{90, asked + 300}},
		{"a log from 0 without times", whole(-1, 0), all, all, end, all},
		{"an empty log from 0", Beginning{kafkaconn.Log{Start: 0, End: 0}, -1, none, trail.Trail{}, 0}, all, all, all, all},
		{"a log from 0 with nothing but markers", Beginning{kafkaconn.Log{Start: 0, End: 90}, -1, none, trail.Trail{}, 0}, want{90, asked + 300}, all, end, want{90, asked + 300}},

		{"a trimmed log of which nothing is known", trimmed(10, asked+5, trail.Trail{}), want{10, unknown}, want{10, unknown}, end, want{10, unknown}},
		{"a trimmed log with an old record at its head", trimmed(40, asked-5, trail.Trail{}), want{40, unknown}, want{10, unknown}, end, want{40, unknown}},
		{"a trimmed log, all of it before, of which nothing is known", trimmed(-1, asked-5, trail.Trail{}), want{90, unknown}, want{10, unknown}, end, want{90, unknown}},
		{"a trimmed log without times", trimmed(-1, 0, trail.Trail{}), want{10, unknown}, want{10, unknown}, end, want{10, unknown}},
		{"a trimmed, empty log", Beginning{kafkaconn.Log{Start: 90, End: 90}, -1, none, trail.Trail{}, 0}, end, end, end, end},

		{"what was deleted was older than asked", trimmed(40, asked-5, marks(10, asked-900)), want{40, asked + 300}, want{10, asked - 900 + 301}, end, want{40, asked + 300}},
		{"what was deleted was older than asked, and all that is left is later", trimmed(10, asked+5, marks(10, asked-900)), want{10, asked - 900 + 301}, want{10, asked - 900 + 301}, end, want{10, asked - 900 + 301}},
		{"what was deleted was later than asked", trimmed(40, asked-5, marks(20, asked+900)), want{40, asked + 900 + 301}, want{10, asked + 900 + 301}, end, want{40, asked + 900 + 301}},
		{"what was deleted had no times", trimmed(10, asked+5, marks(10, 0)), want{10, 0}, want{10, 0}, end, want{10, 0}},
		{"a trail of all there is", trimmed(40, asked-5, marks(10, asked-900, 90, asked+77)), want{40, asked + 300}, want{10, asked - 900 + 301}, want{90, asked + 77 + 301}, want{40, asked + 300}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := Judge{Now: now, MaxFuture: future}
			for s, w := range map[From]want{FromWindow: c.window, FromEarliest: c.earliest, FromLatest: c.latest, FromTime: c.time} {
				at, latest := j.Resolve(Where{s, time.UnixMilli(asked)}, &c.b)
				origin := j.Origin(at, latest)
				require.Equal(t, want{at, origin.Time}, w, "start %d", s)
				require.Equal(t, origin.Offset, at)
			}
		})
	}
}

func TestALostRedisIsNoGapOnlyWhereTheLogProvablyReachesBack(t *testing.T) {
	none := First{None: true}
	for _, c := range []struct {
		name string
		b    Beginning
		want bool
	}{
		{"from offset 0", Beginning{kafkaconn.Log{Start: 0, End: 90}, 0, First{Time: 5}, trail.Trail{}, 0}, true},
		{"from offset 0, without times", Beginning{kafkaconn.Log{Start: 0, End: 90}, -1, First{}, trail.Trail{}, 0}, true},
		{"trimmed, with a record from before", Beginning{kafkaconn.Log{Start: 10, End: 90}, 11, First{Time: 5}, trail.Trail{}, 0}, false},
		{"trimmed, with nothing but records from before", Beginning{kafkaconn.Log{Start: 10, End: 90}, -1, First{Time: 5}, trail.Trail{}, 0}, false},
		{"trimmed, and empty", Beginning{kafkaconn.Log{Start: 90, End: 90}, -1, none, trail.Trail{}, 0}, false},
		{"trimmed, and its records have no times", Beginning{kafkaconn.Log{Start: 10, End: 90}, -1, First{}, trail.Trail{}, 0}, false},
		{"trimmed, and all that is gone was before", Beginning{kafkaconn.Log{Start: 10, End: 90}, 10, First{Time: 7}, marks(10, 5), 0}, true},
		{"trimmed, and what is gone was of the time", Beginning{kafkaconn.Log{Start: 10, End: 90}, 10, First{Time: 7}, marks(10, 6), 0}, false},
		{"trimmed, and the next mark is of the time", Beginning{kafkaconn.Log{Start: 10, End: 90}, 10, First{Time: 7}, marks(9, 5, 11, 6), 0}, false},
		{"trimmed, and nothing gone had a time", Beginning{kafkaconn.Log{Start: 10, End: 90}, 10, First{Time: 7}, marks(10, 0), 0}, true},
		{"trimmed, and brokers set the times", Beginning{kafkaconn.Log{Start: 10, End: 90}, 10, First{Time: 5, Appended: true}, trail.Trail{}, 0}, true},
		{"trimmed and empty, and all that is gone was before", Beginning{kafkaconn.Log{Start: 90, End: 90}, -1, none, marks(90, 5), 0}, true},
	} {
		require.Equal(t, c.want, Judge{Now: 1000}.reaches(&c.b, 6), c.name)
	}
}

func TestALogReachesBackToWhereNothingWasDeletedAndCoversTheWindowsThatStartLater(t *testing.T) {
	none := First{None: true}
	const now = 5000
	for _, c := range []struct {
		name            string
		b               Beginning
		since, complete int64
	}{
		{"nothing was deleted", Beginning{Log: kafkaconn.Log{End: 90}, First: First{Time: 700}}, 0, 0},
		{"nothing was deleted, and nothing was written", Beginning{First: none}, 0, 0},
		{"nobody knows the times of what was deleted", Beginning{Log: kafkaconn.Log{Start: 10, End: 90}, First: First{Time: 700}}, 700, now + 301},
		{"the trail knows them", Beginning{Log: kafkaconn.Log{Start: 10, End: 90}, First: First{Time: 700}, Trail: marks(10, 650)}, 700, 951},
		{"a later record was deleted", Beginning{Log: kafkaconn.Log{Start: 10, End: 90}, First: First{Time: 700}, Trail: marks(10, 900)}, 900, 1201},
		{"all was deleted, and the trail knows when the last was written", Beginning{Log: kafkaconn.Log{Start: 90, End: 90}, First: none, Trail: marks(90, 650)}, 650, 951},
		{"all was deleted, and nothing is known", Beginning{Log: kafkaconn.Log{Start: 90, End: 90}, First: none}, now, now + 301},
		{"records have no times", Beginning{Log: kafkaconn.Log{Start: 10, End: 90}, Trail: marks(10, 0)}, now, 0},
	} {
		since, complete := Judge{Now: now, MaxFuture: 300}.Reach(&c.b)
		require.Equal(t, [2]int64{c.since, c.complete}, [2]int64{since, complete}, c.name)
	}
}
