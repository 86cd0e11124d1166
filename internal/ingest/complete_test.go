package ingest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// marks makes a trail of pairs: offset, time, offset, time, …
func marks(pairs ...int64) (t trail) {
	for i := 0; i < len(pairs); i += 2 {
		t.add(pairs[i], pairs[i+1])
	}
	return t
}

func TestTheTimesOfWhatWasBeforeAnOffsetAreBoundedByTheLowestOfWhatHolds(t *testing.T) {
	const hour = int64(3_600_000)
	const now = 1000 * hour
	word := func(ms int64) *int64 { return &ms }
	created := func(at int64) first { return first{time: at} }
	appended := func(at int64) first { return first{time: at, appended: true} }
	for _, c := range []struct {
		name     string
		offset   int64
		trail    trail
		first    first
		disorder *int64
		want     int64
	}{
		{"from offset 0 nothing is missing", 0, marks(10, hour), created(9 * hour), word(0), 0},
		{"nobody knows", 10, trail{}, created(hour), nil, now},
		{"nobody knows, and the log is empty", 10, trail{}, first{none: true}, nil, now},
		{"an old record at the head of the log proves nothing", 10, trail{}, created(1), nil, now},
		{"the trail, at the offset", 10, marks(10, 7*hour, 20, 9*hour), created(1), nil, 7 * hour},
		{"the trail, by the first mark after it", 11, marks(10, 7*hour, 20, 9*hour), created(1), nil, 9 * hour},
		{"the trail says that none had a time", 3, marks(4, 0), created(hour), nil, 0},
		{"the trail ends before it", 30, marks(10, 7*hour, 20, 9*hour), created(1), nil, now},
		{"the trail ends before it, and knows of later times than the clock", 30, marks(20, 2*now), created(1), nil, 2 * now},
		{"the trail, though that is later than the clock", 20, marks(20, 2*now), created(1), nil, 2 * now},
		{"the broker's times", 10, trail{}, appended(5 * hour), nil, 5 * hour},
		{"the broker's times, the trail knowing less", 10, marks(20, 9*hour), appended(5 * hour), nil, 5 * hour},
		{"the trail, the broker's times knowing less", 10, marks(20, 4*hour), appended(5 * hour), nil, 4 * hour},
		{"the operator's word", 10, trail{}, created(5 * hour), word(hour), 6 * hour},
		{"the operator's word that times never go back", 10, trail{}, created(5 * hour), word(0), 5 * hour},
		{"the operator's word, the trail knowing less", 10, marks(20, 9*hour), created(5 * hour), word(hour), 6 * hour},
		{"the trail, the operator's word saying less", 10, marks(20, 5*hour), created(5 * hour), word(hour), 5 * hour},
		{"the operator's word, and no record to go by", 10, trail{}, first{none: true}, word(hour), now},
		{"the operator's word, and a record without a time", 10, trail{}, created(0), word(hour), now},
		{"a time that would overflow", 10, trail{}, created(math.MaxInt64 - 5), word(hour), math.MaxInt64},
	} {
		j := judge{now: now, maxFuture: 300, disorder: c.disorder}
		latest, _ := j.latest(c.offset, &c.trail, c.first)
		require.Equal(t, c.want, latest, c.name)
	}
}

func TestAnOriginLiesBehindAllThatMayBeMissing(t *testing.T) {
	j := judge{maxFuture: 300}
	require.Equal(t, ledger.Origin{}, j.origin(0, 0))
	require.Equal(t, ledger.Origin{Offset: 7}, j.origin(7, 0), "records were there, and none had a time")
	// A record of time 1000 may have an event of 1300, which a window that begins then takes.
	require.Equal(t, ledger.Origin{Offset: 7, Time: 1301}, j.origin(7, 1000))
	require.Equal(t, ledger.Origin{Offset: 7, Time: math.MaxInt64}, j.origin(7, math.MaxInt64-2))
}

func TestWhereATopicBeginsAndFromWhenItsEventsAreIn(t *testing.T) {
	const asked, future, now, unknown = int64(1_000_000), int64(300), int64(5_000_000), int64(5_000_301)
	whole := func(since, at int64) beginning { return beginning{bounds{0, 90}, since, first{time: at}, trail{}} }
	trimmed := func(since, at int64, t trail) beginning {
		return beginning{bounds{10, 90}, since, first{time: at}, t}
	}
	none := first{none: true}
	type want struct{ at, time int64 }
	all, end := want{0, 0}, want{90, unknown}
	for _, c := range []struct {
		name                           string
		b                              beginning
		window, earliest, latest, time want
	}{
		{"a log from 0, all of it later than asked", whole(0, asked+5), all, all, end, all},
		{"a log from 0 that reaches the time", whole(40, asked-5), want{40, asked + 300}, all, end, want{40, asked + 300}},
		{"a log from 0, all of it before", whole(-1, asked-5), want{90, asked + 300}, all, end, want{90, asked + 300}},
		{"a log from 0 without times", whole(-1, 0), all, all, end, all},
		{"an empty log from 0", beginning{bounds{0, 0}, -1, none, trail{}}, all, all, all, all},
		{"a log from 0 with nothing but markers", beginning{bounds{0, 90}, -1, none, trail{}}, want{90, asked + 300}, all, end, want{90, asked + 300}},

		{"a trimmed log of which nothing is known", trimmed(10, asked+5, trail{}), want{10, unknown}, want{10, unknown}, end, want{10, unknown}},
		{"a trimmed log with an old record at its head", trimmed(40, asked-5, trail{}), want{40, unknown}, want{10, unknown}, end, want{40, unknown}},
		{"a trimmed log, all of it before, of which nothing is known", trimmed(-1, asked-5, trail{}), want{90, unknown}, want{10, unknown}, end, want{90, unknown}},
		{"a trimmed log without times", trimmed(-1, 0, trail{}), want{10, unknown}, want{10, unknown}, end, want{10, unknown}},
		{"a trimmed, empty log", beginning{bounds{90, 90}, -1, none, trail{}}, end, end, end, end},

		{"what was deleted was older than asked", trimmed(40, asked-5, marks(10, asked-900)), want{40, asked + 300}, want{10, asked - 900 + 301}, end, want{40, asked + 300}},
		{"what was deleted was older than asked, and all that is left is later", trimmed(10, asked+5, marks(10, asked-900)), want{10, asked - 900 + 301}, want{10, asked - 900 + 301}, end, want{10, asked - 900 + 301}},
		{"what was deleted was later than asked", trimmed(40, asked-5, marks(20, asked+900)), want{40, asked + 900 + 301}, want{10, asked + 900 + 301}, end, want{40, asked + 900 + 301}},
		{"what was deleted had no times", trimmed(10, asked+5, marks(10, 0)), want{10, 0}, want{10, 0}, end, want{10, 0}},
		{"a trail of all there is", trimmed(40, asked-5, marks(10, asked-900, 90, asked+77)), want{40, asked + 300}, want{10, asked - 900 + 301}, want{90, asked + 77 + 301}, want{40, asked + 300}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := judge{now: now, maxFuture: future}
			for s, w := range map[StartFrom]want{FromWindow: c.window, FromEarliest: c.earliest, FromLatest: c.latest, FromTime: c.time} {
				at, latest := j.resolve(s, &c.b, asked)
				origin := j.origin(at, latest)
				require.Equal(t, want{at, origin.Time}, w, "start %d", s)
				require.Equal(t, origin.Offset, at)
			}
		})
	}
}

func TestALostRedisIsNoGapOnlyWhereTheLogProvablyReachesBack(t *testing.T) {
	none := first{none: true}
	for _, c := range []struct {
		name string
		b    beginning
		want bool
	}{
		{"from offset 0", beginning{bounds{0, 90}, 0, first{time: 5}, trail{}}, true},
		{"from offset 0, without times", beginning{bounds{0, 90}, -1, first{}, trail{}}, true},
		{"trimmed, with a record from before", beginning{bounds{10, 90}, 11, first{time: 5}, trail{}}, false},
		{"trimmed, with nothing but records from before", beginning{bounds{10, 90}, -1, first{time: 5}, trail{}}, false},
		{"trimmed, and empty", beginning{bounds{90, 90}, -1, none, trail{}}, false},
		{"trimmed, and its records have no times", beginning{bounds{10, 90}, -1, first{}, trail{}}, false},
		{"trimmed, and all that is gone was before", beginning{bounds{10, 90}, 10, first{time: 7}, marks(10, 5)}, true},
		{"trimmed, and what is gone was of the time", beginning{bounds{10, 90}, 10, first{time: 7}, marks(10, 6)}, false},
		{"trimmed, and the next mark is of the time", beginning{bounds{10, 90}, 10, first{time: 7}, marks(9, 5, 11, 6)}, false},
		{"trimmed, and nothing gone had a time", beginning{bounds{10, 90}, 10, first{time: 7}, marks(10, 0)}, true},
		{"trimmed, and brokers set the times", beginning{bounds{10, 90}, 10, first{time: 5, appended: true}, trail{}}, true},
		{"trimmed and empty, and all that is gone was before", beginning{bounds{90, 90}, -1, none, marks(90, 5)}, true},
	} {
		require.Equal(t, c.want, judge{now: 1000}.reaches(&c.b, 6), c.name)
	}
}
