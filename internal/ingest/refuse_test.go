package ingest

// This file tests refused members: the cost of refusals, and races.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
)

// inOneBatch makes a worker fold all events into one batch, with pieces of about 32 member-windows. The worker
// sweeps it once release is called.
func (w *world) inOneBatch(all ...earned) (release func()) {
	w.t.Helper()
	r := w.worker(0, func(c *Config) { c.PieceTime = 32 * time.Microsecond; c.FetchBytes = 8 << 20 })
	eventually(w.t, "it has begun", func() bool { return w.standings.at(0) == "0" })
	w.standings.do(func() { w.standings.held = true })
	w.send(0, earned{User: "first", Points: 1, At: time.Now().UnixMilli()})
	eventually(w.t, "the first batch is held up", func() bool { return r.status.Line().State == workers.StateWaiting })
	w.send(0, all...)
	eventually(w.t, "the others are folded", func() bool { return w.stats.Records.Load() == int64(len(all))+1 })
	return func() { w.standings.do(func() { w.standings.held = false }) }
}

// isRefused requires that exactly the members with the prefix are in no board, and that each of their events
// has a dead letter.
func (w *world) isRefused(prefix string, events int) {
	w.t.Helper()
	deadLetters := w.deadLetters()
	require.Len(w.t, deadLetters, events)
	met := map[string]bool{}
	for _, l := range deadLetters {
		require.Equal(w.t, "overflow", l["standings-reason"])
		require.Contains(w.t, l["value"], `"user_id":"`+prefix)
		require.False(w.t, met[l["standings-offset"]], "once, where nothing goes wrong")
		met[l["standings-offset"]] = true
	}
	require.Equal(w.t, int64(events), w.stats.Dead(event.Overflow))
	for _, members := range w.want {
		for m := range members {
			if strings.HasPrefix(m, prefix) {
				delete(members, m)
			}
		}
	}
	w.reaches(0)
}

func TestAnOverflowInEveryPieceOfABatchReadsItOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.standings.limit = 1000
	all := some("a", 6000, 5)
	for i := range all {
		if i%5 == 0 {
			all[i].User = fmt.Sprint("rich", i%3000) // two events per member
			all[i].Points = 501
		}
	}
	release := w.inOneBatch(all...)
	log, folded := w.stats.FetchBytes.Load(), w.stats.Records.Load()
	release()
	eventually(t, "the log is through", func() bool { return w.standings.at(0) == "6001" })
	w.counted(6001)
	require.Greater(t, w.stats.Pieces.Load(), int64(200))
	require.Less(t, w.stats.FetchBytes.Load(), 2*log+log/10)
	require.Equal(t, folded, w.stats.Records.Load(), "what is read again isn't folded again")
	require.Less(t, int64(w.standings.checks), 2*w.stats.Pieces.Load())
	w.isRefused("rich", 1200)
}

// Another partition takes members out of range after the other pieces were checked.
func TestWhoLeavesTheRangeAfterTheOthersWereCheckedIsTakenOutToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.standings.limit = 1000
	all := append(some("a", 400, 5), some("rich", 3, 1001)...)
	late := map[string]bool{}
	release := w.inOneBatch(all...)
	w.standings.do(func() {
		w.standings.apply = func(n int, p *ledger.Piece) reply {
			w.standings.do(func() {
				if len(w.standings.calls) < 2 || len(p.Groups) == 0 || len(late) == 4 {
					return
				}
				m := string(p.Groups[0].Members[0].ID)
				if late[m] {
					return
				}
				late[m] = true
				for _, window := range p.Groups[0].Windows {
					listing := p.Windows[window].Listing()
					w.standings.has(listing, m, total{points: 1000, time: 1})
					w.want[listing][m] = total{points: 1000, time: 1}
				}
			})
			return reply{}
		}
	})
	release()
	eventually(t, "the log is through", func() bool { return w.standings.at(0) == "404" })
	w.counted(404)
	require.Len(t, late, 4)
	deadLetters := w.deadLetters()
	refused := int(w.stats.Dead(event.Overflow))
	require.Len(t, deadLetters, refused)
	for _, l := range deadLetters {
		user := strings.Split(l["value"], `"`)[3]
		require.True(t, late[user] || strings.HasPrefix(user, "rich"), user)
		if !late[user] {
			for _, members := range w.want {
				delete(members, user)
			}
		}
	}
	require.Equal(t, 7, refused)
	w.reaches(0)
}
