package ingest

// Random worlds: good, bad and late events and tombstones, read by owners that
// crash, pause, rival and are lied to, into standings that lose answers, hold,
// and go back in time. Whatever happens, the boards come to what the events say.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
)

// sent is a record and what a naive reader makes of it.
type sent struct {
	value  []byte
	at     int64 // record time
	result string
	event  earned
	boards []string
}

const lateness = int64(24 * time.Hour / time.Millisecond)

func sentRecord(base int64) *rapid.Generator[sent] {
	return rapid.Custom(func(t *rapid.T) sent {
		p := sent{at: base - rapid.Int64Range(0, 3*24*3600*1000).Draw(t, "age")}
		switch rapid.IntRange(0, 19).Draw(t, "kind") {
		case 0:
			p.result = "skipped"
			return p
		case 1, 2:
			p.result, p.value = "dead", []byte(rapid.SampledFrom([]string{"{", "[]", `{"user_id":"u"}`, `{"user_id":"u","points":1.5}`, ""}).Draw(t, "bad"))
			return p
		}
		p.result = "good"
		p.event = earned{
			User:   fmt.Sprint("u", rapid.IntRange(0, 30).Draw(t, "user")),
			Points: rapid.Int64Range(-20, 100).Draw(t, "points"),
			At:     p.at - rapid.Int64Range(-1000, 40*24*3600*1000).Draw(t, "before"),
		}
		p.boards = rapid.SliceOfN(rapid.SampledFrom([]string{"eu", "us", "global"}), 1, 4).Draw(t, "boards")
		value, err := json.Marshal(map[string]any{
			"user_id": p.event.User, "points": p.event.Points, "occurred_at": p.event.At, "board": p.boards,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.value = value
		return p
	})
}

// wants adds what a record comes to, and says what becomes of it.
func (w *world) wants(p sent) string {
	if p.result != "good" {
		return p.result
	}
	taken := false
	slices.Sort(p.boards)
	for _, name := range slices.Compact(p.boards) {
		for _, period := range w.config.Rules.Periods {
			win, err := w.calendar.At(period, p.event.At)
			require.NoError(w.t, err)
			if p.at > win.End+lateness {
				continue
			}
			taken = true
			listing := ledger.Window{Board: name, Period: string(period), Name: win.Name}.Listing()
			if w.want[listing] == nil {
				w.want[listing] = map[string]total{}
			}
			t, ok := w.want[listing][p.event.User]
			if !ok {
				t.time = ledger.NoTime
			}
			if t.points += p.event.Points; p.event.Points > 0 {
				t.time = max(t.time, p.event.At)
			}
			w.want[listing][p.event.User] = t
		}
	}
	if !taken {
		return "late"
	}
	return "good"
}

func (w *world) publish(partition int, all []sent) {
	w.t.Helper()
	var records []*kgo.Record
	for _, p := range all {
		records = append(records, &kgo.Record{Partition: int32(partition), Value: p.value, Timestamp: time.UnixMilli(p.at)})
	}
	require.NoError(w.t, w.client.ProduceSync(context.Background(), records...).FirstErr())
}

func TestAnUndisturbedOwnerAccountsForEveryRecord(t *testing.T) {
	t.Parallel()
	for seed := range 6 {
		w := newWorld(t, 1)
		w.config.Rules.Lateness = lateness
		all := rapid.SliceOfN(sentRecord(time.Now().UnixMilli()), 50, 400).Example(seed)
		became := map[string]int64{}
		for _, p := range all {
			became[w.wants(p)]++
		}
		w.publish(0, all)
		r := w.worker(0, nil)
		w.reaches(0)
		r.stop(t)
		require.Equal(t, int64(len(all)), w.stats.Consumed())
		require.Equal(t, became["good"], w.stats.Applied.Load())
		require.Equal(t, became["late"], w.stats.Late.Load())
		require.Equal(t, became["skipped"], w.stats.Skipped.Load())
		require.Equal(t, became["dead"], w.stats.DeadLettered())
		require.Equal(t, became["dead"], w.stats.Dead(event.Malformed)+w.stats.Dead(event.Invalid))
		require.Zero(t, w.stats.Repeated.Load())
		require.Len(t, w.deadLetters(0), int(became["dead"]))
	}
}

// trouble is what happens while the log is read.
type trouble struct {
	applies []string // what becomes of one call after another
	events  []string // what happens every few milliseconds
}

func troubles() *rapid.Generator[trouble] {
	return rapid.Custom(func(t *rapid.T) trouble {
		return trouble{
			rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "", "before", "after", "slow", "halt"}), 5, 60).Draw(t, "applies"),
			rapid.SliceOfN(rapid.SampledFrom([]string{"publish", "publish", "crash", "rival", "dump", "restore", "wipe", "hold", "reconnect", ""}), 10, 25).Draw(t, "events"),
		}
	})
}

func TestWhateverHappensTheBoardsComeToWhatTheEventsSay(t *testing.T) {
	t.Parallel()
	for seed := range 10 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 2)
			w.config.Rules.Lateness = lateness
			w.config.PieceTime = 20 * time.Microsecond // of 32 member-windows: sweeps have many pieces
			w.config.Start.From = FromEarliest
			trouble := troubles().Example(seed)
			var mu sync.Mutex
			over := false
			w.standings.apply = func(n int, _ *ledger.Piece) reply {
				mu.Lock()
				defer mu.Unlock()
				if over {
					return reply{}
				}
				switch trouble.applies[n%len(trouble.applies)] {
				case "before":
					return reply{err: errLost}
				case "after":
					return reply{err: errLost, executed: true}
				case "halt":
					return reply{err: errHalting, executed: n%2 == 0}
				case "slow":
					time.Sleep(5 * time.Millisecond)
				}
				return reply{}
			}
			owners := []*running{w.worker(0, nil), w.worker(1, nil)}
			restore := w.standings.snapshot()
			bad := [2]int{}
			for i, e := range trouble.events {
				p := i % 2
				switch e {
				case "publish":
					all := rapid.SliceOfN(sentRecord(time.Now().UnixMilli()), 1, 300).Example(seed*1000 + i)
					for _, r := range all {
						if w.wants(r) == "dead" {
							bad[p]++
						}
					}
					w.publish(p, all)
				case "crash":
					owners[p].cancel(errGenerationEnded) // and nobody waits for it
					owners = append(owners, owners[p])
					owners[p] = w.worker(p, func(c *Config) { c.PieceTime = time.Duration(i) * time.Millisecond })
				case "rival":
					owners = append(owners, w.worker(p, nil))
				case "dump":
					restore = w.standings.snapshot()
				case "restore":
					restore()
				case "wipe":
					w.standings.wipe()
				case "hold":
					w.standings.do(func() { w.standings.held = !w.standings.held })
				case "reconnect":
					owners[p].consumer.Reconnected()
				}
				time.Sleep(time.Duration(10*(i%4)) * time.Millisecond)
			}
			mu.Lock()
			over = true
			mu.Unlock()
			w.standings.do(func() { w.standings.held = false })
			w.reaches(0, 1)
			for _, o := range owners {
				o.stop(t)
			}
			w.reaches(0, 1) // and stays there
			for p := range 2 {
				offsets := map[string]bool{}
				for _, l := range w.deadLetters(p) {
					offsets[l["standings-offset"]] = true
				}
				require.Len(t, offsets, bad[p], "every bad event, once or more")
			}
		})
	}
}
