package e2e

// A configuration that changes in a rolling way: every record counts by the rules that it was
// begun by, whoever finishes it.

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// reading is what a configuration makes of the test's records.
type reading struct {
	settings map[string]string
	byPlayer bool // members are players, not users
	eu       bool // there is a board eu
	ahead    bool // an event may lie ten minutes ahead
}

// changed are configurations, each unlike the one before it in what it makes of a record.
func changed() []reading {
	return []reading{
		{eu: true},
		{settings: map[string]string{"event.fields.user_id": "player", "boards": "global"}, byPlayer: true},
		{settings: map[string]string{"max_future": "1h"}, eu: true, ahead: true},
		{settings: map[string]string{"boards": "global"}},
	}
}

// read are n records from an offset on, of as many members, that configurations read differently.
func read(from, n int, now time.Time) (all []*kgo.Record) {
	for i := from; i < from+n; i++ {
		board, at := "global", now
		if i%2 == 0 {
			board = "eu"
		}
		if i%3 == 0 {
			at = at.Add(10 * time.Minute)
		}
		all = append(all, harness.Record(0, fmt.Sprintf(`{"user_id":"u%d","player":"p%d","points":%d,"board":%q,"occurred_at":%d}`,
			i%16_000, i%16_000, 1+i%9, board, at.UnixMilli())))
	}
	return all
}

// counts adds what a configuration makes of the record at an offset: to a board's member.
func (r reading) counts(offset int, into map[string]int64) {
	board, member := "global", "u"
	if offset%2 == 0 {
		board = "eu"
	}
	if r.byPlayer {
		member = "p"
	}
	if board == "eu" && !r.eu || offset%3 == 0 && !r.ahead {
		return
	}
	into[fmt.Sprintf("%s %s%d", board, member, offset%16_000)] += int64(1 + offset%9)
}

func TestARecordCountsByTheRulesThatItWasBegunBy(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for _, shards := range []string{"1", "4"} {
		t.Run(shards, func(t *testing.T) {
			place := harness.New(t, harness.Options{Settings: map[string]string{"piece_time": "500us", "redis.shards": shards, "kafka.session_timeout": "6s"}})
			now := time.UnixMilli(time.Now().UnixMilli())
			published := 0
			more := func() []*kgo.Record {
				all := read(published, 24_000, now)
				published += len(all)
				for _, r := range all {
					r.Timestamp = now
				}
				return all
			}
			place.Produce(t, more()...)
			want := map[string]int64{}
			begun, others := 0, 0
			begins := func(r reading) {
				for i := range place.Shards() {
					text, err := place.RedisClient().HGet(t.Context(), place.KeyIn(i, "ledger"), place.Topic+"/0").Result()
					if err != nil {
						t.Fatal(err)
					}
					at, err := ledger.Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					if at.Sweeping() != strings.Contains(text, "#") {
						t.Errorf("the ledger is at %s", text)
					}
					for ; begun < int(at.To); begun++ {
						r.counts(begun, want)
					}
				}
			}
			var last *harness.Consumer
			for _, r := range changed() {
				at := place.KillInSweep(t, within, harness.Sweep{
					Start: func() *harness.Consumer { last = place.Start(t, r.settings); return last },
					More:  func() []*kgo.Record { place.Produce(t, more()...); return nil },
					Seen: func() bool { // a sweep of its own
						at, err := ledger.Parse(place.Ledger(t)[0])
						return err == nil && int(at.To) > begun
					},
				})
				others += last.Log.Count("reading by the rules of whoever began this, which aren't this process's")
				t.Logf("killed at %v", at)
				begins(r)
			}
			last = place.Start(t, changed()[0].settings)
			place.AwaitCaughtUp(t, within)
			others += last.Log.Count("reading by the rules of whoever began this, which aren't this process's")
			begins(changed()[0])
			last.Terminate(t)
			if others == 0 {
				t.Error("nobody met the rules of another")
			}
			got := map[string]int64{}
			for name, members := range place.Boards(t) {
				board, period, _ := strings.Cut(name, ":")
				if !strings.HasPrefix(period, "yearly:") {
					continue
				}
				for member, bits := range members {
					got[board+" "+member] += int64(math.Floor(math.Float64frombits(bits)))
				}
			}
			wrong := 0
			for who, points := range want {
				if got[who] != points {
					if wrong++; wrong < 5 {
						t.Errorf("%s has %d points, want %d", who, got[who], points)
					}
				}
			}
			for who, points := range got {
				if _, ok := want[who]; !ok {
					if wrong++; wrong < 5 {
						t.Errorf("%s has %d points, and should have none", who, points)
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d standings are wrong of %d", wrong, len(want))
			}
		})
	}
}
