package simulate

// This file reads boards. A board that is shown as whole is compared with what Redis has, and ever had, at
// the moment of the call.

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	firstReader = 201
	readsEvery  = 713*time.Millisecond + 31

	readWhole     = "a board is shown as whole"
	readLost      = "a board is shown as lost"
	readRefilling = "a board is shown as refilling"
	readLacking   = "a board is shown as incomplete"
)

// reading is a reader of boards.
type reading struct {
	*process
	truth truth
}

// truth describes a window in Redis at the moment of a call.
type truth struct {
	board  string // the name in the listing
	listed bool
	there  bool
	behind string // partitions that are still behind their positions before Redis was lost
	lacks  bool   // it lacks events for good
	hidden map[banned]bool
}

// read starts a reader of boards.
func (w *world) read() {
	p := &process{w: w, topics: topics[:w.setup.topics()], has: w.plan.seed%2 == 0, id: firstReader + len(w.readers), swept: map[sweeping]int64{}, stats: new(counts.Stats), done: make(chan struct{}), ending: newEnding()}
	r := &reading{process: p}
	w.mu.Lock()
	w.readers = append(w.readers, r)
	w.mu.Unlock()
	p.dial()
	shard := boards.Together([]*ranking.Store{p.store(w.shards[0])})
	go func() {
		defer close(p.done)
		for n := 0; p.Err() == nil; n++ {
			board, window := w.choice(n, p.has)
			if b, err := shard.Top(p.ending, board, window, 0, 3); err == nil {
				r.judge(&b)
			}
			select {
			case <-p.Done():
			case <-time.After(readsEvery):
			}
		}
	}()
}

// choice returns the n-th board and window that a reader reads, with the added period or without.
func (w *world) choice(n int, has bool) (string, periods.Window) {
	boards := []string{"global", "eu", "us"}
	back := []time.Duration{0, 26 * time.Hour, 10 * day}
	all := w.setup.periodsOf(has)
	period := all[n%len(all)]
	rule := w.rule(period)
	window, place, err := rule.At(beginning.Add(-back[n/2%3]).UnixMilli())
	if err != nil {
		panic(err) // the world's own times
	}
	if place != periods.Inside {
		window, _ = rule.First()
	}
	return boards[n/5%3], window
}

// note records the truth about the window that a reader requests, when the call is executed.
func (r *reading) note(key string) {
	w := r.w
	sh := w.shards[0]
	name := strings.TrimPrefix(key, sh.tag)
	text, listed := sh.hash(windowsKey)[name]
	r.truth = truth{board: name, listed: listed && !w.over(text), there: !sh.lacks(name, text), hidden: maps.Clone(sh.aligned)}
	now := sh.ledger()
	for p, was := range sh.known {
		if at, _, _ := parse(strings.TrimPrefix(now[p], "torn:")); at < was {
			r.truth.behind += fmt.Sprintf(" partition %d is at %q, and was at %d;", p, now[p], was)
		}
	}
	_, r.truth.lacks = sh.leftOut(nil, true)[name]
	r.truth.lacks = r.truth.lacks || r.truth.listed && sh.countedWithout(name, text)
}

// judge compares an answer with the truth. It runs concurrently with the driver.
func (r *reading) judge(b *ranking.Board) {
	progress, t := workers.Of(&b.Beside, r.topics), r.truth
	whole := b.Lost == "" && len(progress.Refilling) == 0 && !progress.CatchingUp() && len(b.Incomplete) == 0
	wrong := ""
	switch {
	case t.listed && !t.there && b.Lost == "":
		wrong = "a board whose key is gone is shown"
	case t.lacks && b.Lost == "" && len(b.Incomplete) == 0:
		wrong = "a board that lacks events for good is shown as complete"
	case t.behind != "" && b.Lost == "" && len(progress.Refilling)+len(progress.NotBegun) == 0:
		// Lag alone is not enough: workers report it, and there may be none. With two topics, one may be
		// refilled before the other is found to be lost.
		wrong = "a half board is shown and not as refilling while a lost Redis is filled again:" + t.behind
	}
	for _, row := range b.Standings {
		if board, _, _ := strings.Cut(t.board, ":"); t.hidden[banned{board, row.Member}] || t.hidden[banned{"", row.Member}] {
			wrong = "a reader sees a member who is banned"
		}
	}
	w := r.w
	w.telling.Lock()
	switch {
	case b.Lost != "":
		w.seen[readLost]++
	case len(progress.Refilling) > 0:
		w.seen[readRefilling]++
	case len(b.Incomplete) > 0:
		w.seen[readLacking]++
	case whole && b.Listed:
		w.seen[readWhole]++
	}
	w.telling.Unlock()
	if wrong != "" {
		said := fmt.Sprintf("%s: %s", wrong, t.board)
		w.groundless.Store(&said)
	}
}

// loses records the positions before the shard is lost.
func (sh *shard) loses() {
	if len(sh.counted) == 0 {
		return
	}
	sh.known = map[int]int64{}
	for p, text := range sh.ledger() {
		from, _, _ := parse(strings.TrimPrefix(text, "torn:"))
		sh.known[p] = from
	}
}
