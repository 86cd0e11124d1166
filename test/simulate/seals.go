package simulate

// This file seals windows while everything else happens: all processes seal concurrently, and an operator
// reopens windows. The product's own code finds the windows that are due, requests the logs' ends, and
// sends the script. Each of these calls is a step of the driver.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/sealing"
)

const (
	closes  = "the clocks pass the end of windows"
	reopens = "final windows are reopened"

	sealed        = "a window is final on a shard"
	sealedAgain   = "a window is final again, as another revision"
	refusedFinal  = "an event that a final window refused"
	lateForAll    = "an event that all of its windows refused, final"
	apartFinal    = "a window is final on one shard, and not on another"
	sealedAfresh  = "a window is sealed in a Redis that went back to before"
	rebuiltLost   = "a final window that was lost is rebuilt as an open one"
	lostReopening = "a shard went back to before a window was reopened"
	ownBehind     = "a window is due by Redis's clock, and not by a process's own"
)

// sealsFrom is the seed after which worlds have final windows.
const sealsFrom = int64(1) << 43

// seals makes windows final, and sends events for them afterwards.
func (p *plan) seals() {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x5ea1))}
	s := &p.setup
	s.Seal, s.SealEvery = true, time.Duration(d.pick(700, 700, 2000))*time.Millisecond
	s.MaxPoints = 99_999_999 // overflow is tested in other worlds
	for range 4 {
		s.Apart = append(s.Apart, time.Duration(d.pick(0, 0, 0, -40, 40, -7000, 7000))*time.Second)
	}
	for range d.pick(1, 1, 2) {
		p.events = append(p.events, fault{at: 20 + d.IntN(d.pick(30, 30, 120)), kind: closes, n: d.IntN(1 << 16)})
		var then []fault
		for range 1 + d.IntN(4) { // late events for the window
			p.sendings = append(p.sendings, p.sendings[d.IntN(len(p.sendings))])
			then = append(then, fault{at: d.IntN(80), kind: publish, n: len(p.sendings) - 1})
		}
		if d.IntN(2) == 0 {
			then = append(then, fault{at: d.IntN(80), kind: pick(d, rollback, rollback, rollback, wipe), n: d.IntN(1 << 16)})
		}
		if d.IntN(2) == 0 {
			then = append(then, fault{at: 10 + d.IntN(60), kind: reopens, n: d.IntN(1 << 16)})
		}
		if s.Shards < 2 {
			for range d.IntN(3) {
				then = append(then, fault{at: d.IntN(100), kind: rebuilds, n: d.IntN(1 << 16)})
			}
			if d.IntN(4) == 0 {
				at := 20 + d.IntN(60)
				then = append(then, fault{at: at, kind: evict, n: d.IntN(1 << 16)}, fault{at: at + 1 + d.IntN(20), kind: rebuilds, n: d.IntN(1 << 16)})
			}
		}
		p.closed = append(p.closed, then)
	}
	for range d.IntN(5) {
		f := fault{at: d.IntN(d.pick(60, 160)), n: d.IntN(1 << 16), on: pick(d, "seal", "seal", "seal", "seal", "due", "offsets", reopens)}
		f.kind = pick(d, cutBefore, lostAnswer, silence, slow, slow, slow, crash)
		if f.on == "seal" || f.on == reopens {
			f.kind = pick(d, f.kind, f.kind, lateDone, lateDone, dies, refused)
		}
		p.events = append(p.events, f)
	}
}

// finality holds clocks and windows that ever were final, independent of what happens to Redis.
type finality struct {
	ahead   time.Duration   // of the machines' clocks: closes moves them together with Redis's
	highest int64           // the highest value that reached has returned
	ever    map[string]bool // by name: windows that were final on some shard
}

// reached returns the lower of Redis's clock and the fastest process's clock, in ms; it never decreases.
// Before it has passed a window's end and lateness, no process can have found the window due.
func (w *world) reached() int64 {
	at := time.Now().Add(w.final.ahead + slices.Max(append([]time.Duration{0}, w.setup.Apart...)))
	if redis := w.now(); redis.Before(at) {
		at = redis
	}
	w.final.highest = max(w.final.highest, at.UnixMilli())
	return w.final.highest
}

// own returns a process's own clock.
func (p *process) own() time.Time {
	at := time.Now().Add(p.w.final.ahead)
	if apart := p.w.setup.Apart; len(apart) > 0 {
		at = at.Add(apart[p.id%len(apart)])
	}
	return at
}

// closesAt returns when a window stops accepting events, in ms, from its name and its listing.
func closesAt(name, listing string) (int64, bool) {
	window, err := ranking.ParseListing(name, listing)
	if err != nil {
		return 0, false
	}
	return window.End + latenessOf(window.Period).Milliseconds(), true
}

// closes moves all clocks until some listed window accepts no more events; usually the next one.
func (w *world) closes(n int) bool {
	if !w.setup.Seal {
		return false
	}
	var all []int64
	for _, sh := range w.shards {
		for name, text := range sh.hash(windowsKey) {
			if at, ok := closesAt(name, text); ok && at >= w.reached() && at < beginning.Add(20*day).UnixMilli() {
				all = append(all, at)
			}
		}
	}
	if len(all) == 0 {
		const until = 200
		if w.step < until { // some events may count by then
			w.events = append(w.events, fault{at: w.step + 5, kind: closes, n: n})
		}
		return false
	}
	slices.Sort(all)
	at := all[0]
	if n%4 == 0 {
		at = all[n>>2%len(all)]
	}
	if n%3 == 1 { // first stop shortly before
		before := time.Duration(1+n>>4%110) * time.Minute
		w.movesOn(time.UnixMilli(at).Add(-before))
		w.events = append(w.events, fault{at: w.step + 5 + n>>6%20, kind: closes, n: n - 1})
		return false
	}
	w.movesOn(time.UnixMilli(at).Add(time.Duration(1+n>>4%3000) * time.Millisecond))
	if done := w.counts[closes]; done < len(w.plan.closed) {
		for _, f := range w.plan.closed[done] {
			f.at += w.step
			w.events = append(w.events, f)
		}
	}
	return true
}

// movesOn moves all clocks so far that the slower one of Redis's and the machines' clocks is at a time.
func (w *world) movesOn(to time.Time) {
	by := max(to.Sub(w.now()), to.Sub(time.Now().Add(w.final.ahead)), 0)
	w.notesOver()
	w.jumps(by)
	w.mu.Lock()
	w.final.ahead += by
	w.mu.Unlock()
	w.tellf("the clocks move on by %v", by)
	w.reached()
}

// closesAll moves the clocks past the ends of the world's windows, after its faults.
func (w *world) closesAll() {
	if !w.setup.Seal {
		return
	}
	w.movesOn(beginning.Add(4*day + 12*time.Hour))
}

// aboutSeal describes a call of seal.lua.
func aboutSeal(args []string) string {
	return fmt.Sprintf("seal %d windows", (len(keys(args))-6)/2)
}

// seals makes a process seal windows until it ends. The caller must call wait, which waits for that end.
func (p *process) seals() (wait func()) {
	s := p.w.setup
	if !s.Seal || p.id >= firstRebuild {
		return func() {}
	}
	log := zap.New(&logCore{p: p})
	all := p.boards()
	sealer := &sealing.Sealer{
		Boards: all, Kafka: &kafka.Client{Addr: kafka.TCP("192.0.2.1:9092"), Transport: &transport{p.w, p}, Timeout: callTimeout},
		Topics: p.topics, Log: log, Now: p.owned,
		Lateness: func(w ledger.Window) (time.Duration, bool) {
			return latenessOf(w.Period), slices.Contains(s.Periods, w.Period)
		},
	}
	var beside sync.WaitGroup
	beside.Go(func() {
		for {
			select {
			case <-time.After(s.SealEvery + time.Duration(p.id)*1_299_709*time.Nanosecond):
				if _, err := sealer.Seal(p.ending); err != nil && p.Err() == nil {
					p.w.notef("process %d: %v", p.id, err)
				}
			case <-p.Done():
				return
			}
		}
	})
	return beside.Wait
}

// owned returns the process's own clock, for use by its goroutines.
func (p *process) owned() time.Time {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.own()
}

func (p *process) boards() *boards.Boards {
	var all []*ranking.Store
	for _, sh := range p.w.shards {
		all = append(all, p.store(sh))
	}
	return boards.Together(all)
}

// reopens starts a process that reopens a final window for a while.
func (w *world) reopens(n int) bool {
	var all []string
	for _, sh := range w.shards {
		for name := range sh.sealed.final {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		const until = 300
		if w.step < until {
			w.events = append(w.events, fault{at: w.step + 5, kind: reopens, n: n})
		}
		return false
	}
	name := all[n%len(all)]
	parts := strings.SplitN(name, ":", 3)
	until := w.now().Add(time.Duration(n>>4%3) * 5 * time.Second)
	w.tellf("%s is to be reopened, until %.1f s by Redis's clock", name, until.Sub(w.now()).Seconds())
	w.errandOf(reopens, func(p *process) (int64, error) {
		for try := 0; ; try++ {
			revision, err := p.boards().Unseal(p, ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}, until, "a test")
			if err == nil || errors.Is(err, ranking.ErrNotFinal) || errors.Is(err, ranking.ErrOver) || p.Err() != nil || try == 5 {
				return revision, err
			}
			select { // as an operator does
			case <-time.After(time.Second):
			case <-p.Done():
			}
		}
	})
	return false // counted when it has finished
}
