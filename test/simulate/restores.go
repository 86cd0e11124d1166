package simulate

// Restores: Redis is lost while the log begins with a snapshot, and the product's own job brings the
// boards back, beside consumers that are halted or begin by themselves. It crashes, is cut off and comes
// late like a rebuild, and Redis goes back while it loads.

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
)

const (
	losesAll = "Redis is lost, and the log begins with a snapshot"
	restores = "a restore starts"

	restored     = "a restore has swapped"
	restoredLate = "a restore has swapped what others crashed over"
	restoreBack  = "Redis goes back in the middle of a restore"
	emptied      = "the operator empties a Redis that consumers have begun in part"
	restoreEnds  = "a restore ended without a swap"
	restoredPart = "a restore starts where others have swapped some shards, and not all"
)

// What happens in the world of seed restoresFrom+n is what happens in that of n, as far as it can.
const restoresFrom = int64(1) << 45

// restores has Redis be lost once a snapshot is whole, and be restored.
func (p *plan) restores() {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x4e57))}
	s := &p.setup
	s.Shards, s.Masters, s.MaxPoints, s.Continue, s.Restores = 0, 0, 99_999_999, false, true
	s.PageMembers, s.PagePause = d.pick(2, 3, 5), time.Duration(d.pick(0, 50, 100))*time.Millisecond
	p.events = slices.DeleteFunc(p.events, func(f fault) bool {
		return f.kind != publish && f.kind != endOpen && f.kind != topicMade && (d.IntN(4) > 0 || !slices.Contains([]string{start, stop, crash, slow, lostAnswer, lateDone, rebalance}, f.kind))
	})
	p.events = append(p.events, fault{at: 5 + d.IntN(40), kind: snaps, n: d.IntN(1 << 16)}, fault{at: 60, kind: losesAll, n: d.IntN(1 << 16)})
	for range 3 {
		var all []fault
		for range 2 + d.IntN(4) { // so that pages are of several positions, and some of the log is behind them
			p.sendings = append(p.sendings, p.sendings[d.IntN(len(p.sendings))])
			all = append(all, fault{at: d.IntN(60), kind: publish, n: len(p.sendings) - 1})
		}
		if d.IntN(4) == 0 {
			all = append(all, fault{at: d.IntN(40), kind: pick(d, backAfter, restarts, grow), n: d.IntN(1 << 16)})
		}
		p.read = append(p.read, all)
	}
	for range d.pick(0, 1, 2, 3) {
		f := fault{at: d.IntN(25), n: d.IntN(1<<16) | 1}
		switch f.kind = pick(d, cutBefore, lostAnswer, lostAnswer, lateDone, lateDone, slow, silence, refused, dies, crash, crash, rollback, rollback, rollback, rollback, start, sleeps, grow); f.kind {
		case rollback, start, sleeps, grow:
		default:
			f.on = pick(d, "load", "load", "load", "loaded", "rebuild", "swap")
		}
		p.lost = append(p.lost, f)
	}
	if d.IntN(4) == 0 { // and it has forgotten some of what was loaded
		p.lost = append(p.lost, fault{kind: backMidway, on: pick(d, "load", "loaded", "loaded"), n: d.IntN(1<<16) | 1<<8})
	}
	for range d.IntN(3) {
		p.sendings = append(p.sendings, p.sendings[d.IntN(len(p.sendings))])
		p.lost = append(p.lost, fault{at: d.IntN(60), kind: publish, n: len(p.sendings) - 1})
	}
}

// What happens in the world of seed shardedRestoresFrom+n is what happens in that of restoresFrom+n, as far
// as it can, with several shards on one server.
const shardedRestoresFrom = int64(1) << 46

// laterSwap is a swap of a restore where other shards are swapped already.
const laterSwap = "a later swap"

// restoresShards has all shards of several be lost, and something happen between two of their swaps.
func (p *plan) restoresShards() {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x54e7))}
	s := &p.setup
	s.Shards, s.Masters, s.Readers = 2+d.IntN(2), 1, 0
	if d.IntN(3) == 0 { // so that a later shard's pages have a partition that those of the first don't
		i := d.IntN(2)
		p.read[i] = append(p.read[i], fault{at: 2 + d.IntN(12), kind: grow, n: d.IntN(1 << 16)})
	}
	for range d.IntN(3) {
		f := fault{kind: pick(d, crash, crash, crash, lateDone, lostAnswer, slow, backMidway, silence), on: pick(d, "swap", laterSwap, laterSwap), n: d.IntN(1<<16) | 1}
		if f.kind == backMidway {
			f.n |= 1 << 8
		}
		p.lost = append(p.lost, f)
	}
	for range 1 + d.IntN(2) { // who comes where another has crashed
		p.lost = append(p.lost, fault{at: 30 + d.IntN(150), kind: restores, n: d.IntN(1 << 16)})
	}
}

// isLaterSwap reports whether a call swaps a shard after others.
func (c *call) isLaterSwap() bool {
	return c.kind == "swap" && c.from.restores != nil && c.from.w.back.lost && c.from.w.isBack(true)
}

// restoring is what there is of snapshots to restore from.
type restoring struct {
	file *snapFile // the latest one that is whole
	lost bool      // Redis was, and nothing has brought all of its shards back
	runs int
}

// snapFile is a snapshot outside of Redis.
type snapFile struct {
	name  string
	taken []*taken // by shard
}

// first is the offset from which a partition's log is needed: before it every shard has every event as the
// snapshot is begun. It is false where a shard hasn't begun the partition by then.
func (f *snapFile) first(partition int) (lowest int64, all bool) {
	for i, t := range f.taken {
		position, begun := t.begin.ledger[partition]
		if !begun {
			return 0, false
		}
		if from, _, _ := parse(position); i == 0 || from < lowest {
			lowest = from
		}
	}
	return lowest, true
}

// write writes a page, or the end, into a file in memory.
type snapWriter struct {
	to *bytes.Buffer
	*snapshot.Writer
}

func (p *process) writesSnapshot(sh *shard, begin *ranking.Instant) (*snapWriter, error) {
	to := new(bytes.Buffer)
	w, err := snapshot.NewWriter(to, snapshot.Head{Prefix: prefix, Shard: sh.number, Shards: len(p.w.shards), Schema: p.store(sh).Schema()}, begin)
	return &snapWriter{to, w}, err
}

// losesAll has Redis be lost, and the log begin with the latest snapshot.
func (w *world) losesAll(f fault) bool {
	if w.back.file == nil || w.isRead() {
		return w.putsOff(f, 390)
	}
	for _, t := range w.back.file.taken {
		w.tellf("the snapshot begun at %v%s is to be restored", t.begin, t.sh.named())
	}
	m := w.masters[0]
	for _, sh := range m.shards {
		sh.loses()
	}
	m.restore(m.histories[0])
	m.histories = m.histories[:1] // nothing older comes back
	w.tellf("%s is wiped", m.named())
	m.reconnects(f.n)
	for _, log := range w.kafka.partitions {
		from, begun := w.back.file.first(log.id)
		if to := log.holding(from); begun && to > log.start {
			log.start = to
			w.tellf("the log of partition %d begins at offset %d now", log.id, to)
		}
	}
	w.count(wipe)
	w.back.lost = true
	for _, then := range w.plan.lost {
		then.at += w.step
		w.events = append(w.events, then)
	}
	if f.n%3 > 0 {
		w.restore(w.another(f.n))
	} else { // consumers have a while without
		w.events = append(w.events, fault{at: w.step + 5 + f.n%40, kind: restores, n: f.n})
	}
	return true
}

// losesAgain empties Redis.
func (w *world) losesAgain() {
	m := w.masters[0]
	m.restore(m.histories[0])
	m.reconnects(1 << 8)
}

// restore starts one.
func (w *world) restore(s size) {
	r := w.visitor(s)
	p, file := r.process, w.back.file
	r.restores = file.taken
	if w.back.runs++; w.isBack(true) && w.isBack(false) {
		w.count(restoredPart)
	}
	var surveys []*snapshot.Survey
	for _, t := range file.taken {
		survey, err := snapshot.SurveyOf(bytes.NewReader(t.file))
		if err != nil {
			w.failf("a snapshot can't be read: %v", err)
			close(p.done)
			return
		}
		surveys = append(surveys, survey)
	}
	job := &rebuild.Job{
		Owner: p.name(),
		Replay: func(into []*shadow.Store) (*ingest.Replay, error) {
			c := p.config(s)
			c.Standings = nil
			for _, one := range into {
				c.Standings = append(c.Standings, one)
			}
			return ingest.NewReplay(c), nil
		},
		Restore: &rebuild.Snapshot{
			Name: file.name, Surveys: surveys, Memory: 1 << 20,
			Pages: func(_ context.Context, shard int, each func(*ranking.SnapshotPage) error) error {
				return surveys[shard].Pages(bytes.NewReader(file.taken[shard].file), each)
			},
		},
		From: ingest.ReplayFrom{From: starts.FromWindow}, Choice: shadow.Choice{AcceptIncomplete: true},
		MaxHold: 2 * time.Second, Lease: rebuildLease,
		Watch: rebuild.Watch{Note: func(text string) { w.tellf("    restore %d says: %s", p.id, text) }},
	}
	for _, sh := range w.shards {
		job.Live = append(job.Live, p.store(sh))
	}
	w.tellf("restore %d starts", p.id)
	w.count(restores)
	go func() {
		defer close(p.done)
		r.result, p.err = job.Run(p.ending)
	}()
}

// restoredBy notes that what was restored is in: what counts is what the snapshot's history has, and the log.
func (sh *shard) restoredBy(by *process) {
	w := sh.w
	if by.restores == nil {
		return
	}
	t := by.restores[sh.number]
	w.count(restored)
	sh.back = true
	w.back.lost = w.back.lost && w.isBack(false)
	last := t.last
	began := maps.Clone(last.inside.starts)
	maps.Copy(began, t.begin.inside.starts)
	for p := range sh.ledger() {
		if _, has := began[p]; !has {
			began[p] = sh.starts[p]
		}
	}
	sh.starts, sh.lost, sh.looked = began, slices.Clone(last.inside.lost), maps.Clone(last.inside.looked)
	for _, p := range w.kafka.partitions {
		if from, _, _ := parse(sh.ledger()[p.id]); from > 0 {
			sh.furthest[p.id], sh.moved[p.id] = max(sh.furthest[p.id], from), max(sh.moved[p.id], from)
		}
	}
	sh.known = nil
}

// isBack reports whether any shard was restored since all were lost, or else whether any wasn't.
func (w *world) isBack(back bool) bool {
	return slices.ContainsFunc(w.shards, func(sh *shard) bool { return sh.back == back })
}

// isBegunInPart reports whether a shard has a ledger that isn't what was restored.
func (w *world) isBegunInPart() bool {
	return slices.ContainsFunc(w.shards, func(sh *shard) bool { return !sh.back && len(sh.ledger()) > 0 })
}

// restoresAgain has somebody restore what is lost still.
func (w *world) restoresAgain(n int) bool {
	most := 8
	if w.ending { // what came before may all have met the lock of one that has crashed
		most = 16
	}
	if !w.back.lost || w.back.runs > most || w.isRestored() {
		return false
	}
	w.restore(w.another(n))
	return true
}

// isRestored reports whether a restore is under way.
func (w *world) isRestored() bool {
	return slices.ContainsFunc(w.rebuilds, func(r *rebuilding) bool { return r.restores != nil && !r.told && !r.dead })
}

// restoreEnded notes what came of one.
func (w *world) restoreEnded(r *rebuilding) {
	if r.err == nil && r.result != nil && r.result.Swapped {
		if w.back.runs > 1 {
			w.count(restoredLate)
		}
		w.tellf("restore %d has swapped", r.id)
		return
	}
	w.count(restoreEnds)
	w.tellf("restore %d ends: %v", r.id, r.err)
	if !w.ending {
		w.events = append(w.events, fault{at: w.step + 10, kind: restores, n: r.id})
	}
}

func nameOfSnapshot(of []*taken) string {
	return fmt.Sprintf("20000101T000000Z-%s", strings.ToLower(fmt.Sprintf("%08d", len(of[0].all))))
}
