package simulate

// This file runs rebuilds: a rebuild is not a consumer, but like one it crashes, is cut off, and its calls
// arrive late.

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/test/simulate/redissim"
)

const (
	rebuildLease = 10 * time.Second

	rebuiltBehind = "a rebuild moves the ledger back"
)

// rebuilding is a running rebuild.
type rebuilding struct {
	*process
	result *rebuild.Result
	told   bool
	wakes  time.Time // set while it is cut off
}

// rebuild starts a rebuild.
func (w *world) rebuild(s size) {
	r := w.visitor(s)
	p := r.process
	job := &rebuild.Job{
		From:  replay.From{From: starts.FromWindow, SinceOrigin: true},
		Owner: p.name(),
		Replay: func(into []*shadow.Store) (*replay.Replay, error) {
			c := p.config(s)
			c.Standings = nil
			for _, one := range into {
				c.Standings = append(c.Standings, one)
			}
			return ingest.NewReplay(c), nil
		},
		MaxHold: 2 * time.Second, Lease: rebuildLease,
		Compare: p.id%2 == 0, // a comparison pauses the consumers
	}
	for _, sh := range w.shards {
		job.Live = append(job.Live, p.store(sh))
	}
	w.tellf("rebuild %d starts", p.id)
	go func() {
		defer close(p.done)
		r.result, p.err = job.Run(p.ending)
	}()
}

const firstRebuild = 101

// visitor starts a process for one task.
func (w *world) visitor(s size) *rebuilding {
	p := &process{w: w, size: s, shadow: map[int][]counted{}, swept: map[sweeping]int64{}, topics: w.topics, book: w.book, has: w.adds, id: firstRebuild + len(w.rebuilds), stats: new(counts.Stats), done: make(chan struct{}), ending: newEnding()}
	r := &rebuilding{process: p}
	w.mu.Lock()
	w.rebuilds = append(w.rebuilds, r)
	w.mu.Unlock()
	p.dial()
	return r
}

// anythingCounts reports whether some partition is past its start.
func (w *world) anythingCounts() bool {
	for _, sh := range w.shards {
		for p, text := range sh.ledger() {
			from, to, _ := parse(strings.TrimPrefix(text, "torn:"))
			if max(from, to) > sh.starts[p] {
				return true
			}
		}
	}
	return false
}

// ofRebuild describes the call as a command of a rebuild.
func (c *call) ofRebuild(command *redissim.Command) {
	c.kind, c.writes = "rebuild", true
	if c.from.errand != "" {
		c.kind = c.from.errand
	}
	name := command.Name()
	if len(c.shard.on.shards) > 1 {
		key := command.Args[min(1, len(command.Args)-1)]
		if strings.HasSuffix(name, ".lua") {
			key = keys(command.Args)[0]
		}
		c.shard = c.shard.on.has(key)
	}
	switch name {
	case "apply.lua":
		field, expected, next := piece(command.Args)
		c.what = fmt.Sprintf("shadow: apply %s %s → %s", strings.TrimPrefix(field, topic+"/"), expected, next)
		c.width = len(command.Args) / 3
	case "swap.lua":
		c.kind, c.what = "swap", "swap the boards"
	case "state.lua", "there.lua", "page.lua", "HGET", "HGETALL", "HSCAN", "ZRANGE":
		c.what, c.writes = name, false
	default:
		c.what = name
	}
	c.what += c.shard.named()
}

// swapped handles a swap, and keeps the state, so that Redis may go back to it.
func (w *world) swapped(c *call, r redissim.Result) {
	sh, by := c.shard, c.from
	if r.Torn() {
		sh.on.damaged, sh.half = true, true
		sh.tears()
		w.tellf("the swap dies midway%s: the ledger is %s now", sh.named(), w.ledgers())
		return
	}
	list, _ := r.Reply.([]any)
	if len(list) == 0 {
		return
	}
	w.count(fmt.Sprint("swap answers ", list[0]))
	w.tellf("the boards are swapped%s: %s; the ledger is %s", sh.named(), short(r.Reply), w.ledgers())
	if list[0] == "swapped" && r.Writes > 0 { // a repeated call changes nothing
		sh.settles(by) // the rebuild has settled all damage
		sh.movedBack(c.was)
		listed := sh.hash(windowsKey)
		maps.DeleteFunc(w.dropped, func(name string, _ bool) bool { _, back := listed[name]; return back })
		sh.since = sh.origins()
		sh.beginsElected()
		sh.rebuiltBy(by)
		sh.rebuiltFinal(c)
		sh.on.keep()
		sh.looks(c)
	}
}

// movedBack records the positions before a swap: until they are reached again, boards are shown as
// refilling.
func (sh *shard) movedBack(was map[int]string) {
	now := sh.ledger()
	for p, text := range was {
		before, _, _ := parse(strings.TrimPrefix(text, "torn:"))
		if at, _, _ := parse(now[p]); at < before {
			if sh.known == nil {
				sh.known = map[int]int64{}
			}
			sh.known[p] = max(sh.known[p], before)
			sh.w.count(rebuiltBehind)
		}
	}
}

// rebuildsEnded reports the rebuilds that have ended, and whether all have.
func (w *world) rebuildsEnded() bool {
	all := true
	for _, r := range w.rebuilds {
		select {
		case <-r.done:
		default:
			all = false
			if r.cut && !time.Now().Before(r.wakes) {
				r.cut = false
				w.tellf("rebuild %d is let through again", r.id)
				w.count(sleeps)
			}
			continue
		}
		if r.told {
			continue
		}
		r.told = true
		switch busy := (*shadow.BusyError)(nil); {
		case r.dead:
		case r.errand != "":
			w.returns(r)
		case r.err == nil && r.result.Swapped:
			w.count("rebuild: swapped")
			w.leavesNothing(r)
			w.addedNames(r.process)
			w.tellf("rebuild %d has swapped the boards", r.id)
		case r.err == nil:
			w.count("rebuild: nothing to replace")
			w.tellf("rebuild %d found nothing to replace", r.id)
		case errors.As(r.err, &busy):
			w.count("rebuild: another was under way")
			w.tellf("rebuild %d: %v", r.id, r.err)
		default:
			w.count("rebuild: ended without a swap")
			w.tellf("rebuild %d ends: %v", r.id, r.err)
		}
	}
	return all
}
