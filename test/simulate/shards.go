package simulate

// This file holds the shards and masters: the content of each shard, and what the simulation knows about
// its history.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/simulate/redissim"
)

// The names of a shard's keys, after its tag, as in the design.
const (
	ledgerKey  = "ledger"
	originKey  = "origin"
	schemaKey  = "schema"
	windowsKey = "windows"
	namesKey   = "names"
	holdKey    = "hold"
)

// master is one server. It goes back, or is lost, with all of its shards.
type master struct {
	w         *world
	number    int
	redis     *redissim.Server
	shards    []*shard
	histories []history
	damaged   bool         // only an operator can repair it
	refusing  atomic.Int64 // until then it accepts no connections, Unix ns
	changed   time.Time    // when it last went back or lost data
	outage    outage
}

// shard is one of the shards.
type shard struct {
	w      *world
	on     *master
	number int
	tag    string // the prefix of its keys

	inside
	since       map[int]ledger.Origin // the last known origins
	furthest    map[int]int64         // highest positions ever
	moved       map[int]int64         // highest positions reached by pieces
	began       map[int]int64         // highest offsets of starts, including those after a gap
	counted     map[string]bool       // by topic: some event has counted
	torn        map[string]bool       // torn ledgers by field
	evicted     map[string]bool       // keys
	known       map[int]int64         // positions when the shard was lost
	half        bool                  // a swap died midway
	namesDue    *process              // the rebuild that has swapped since Redis evicted the names, and will add them
	addedBefore bool                  // the period was added at some time
	opened      map[string]bool       // boards that ever had a window, if room is short
}

// inside holds the simulation's knowledge about a shard's state. It goes back with the shard.
type inside struct {
	starts  map[int]int64 // where partitions started
	looked  map[int]int64 // Redis's clock at the start, ms
	heads   map[int]int64 // the logs' starts then, if records without a time may be left out from there
	lost    []gone
	books   map[int][]counted // by partition: the configuration by which records count
	aligned map[banned]bool   // members who are hidden and must remain so
	sealed  sealedOf
	period  hasPeriod
}

// gone denotes events that a skip left out: in [from, to), those whose member's hash is not below the
// sweep's.
type gone struct {
	partition int
	from, to  int64
	hash      uint64
	looked    int64 // Redis's clock at the skip, ms
}

func (s *setup) shards() ledger.Shards { return ledger.Shards(max(1, s.Shards)) }

// build creates the masters and their shards. The shards are distributed like contiguous ranges of slots.
func (w *world) build() {
	n, masters := int(w.setup.shards()), max(1, w.setup.Masters)
	for i := range masters {
		m := &master{w: w, number: i, redis: redissim.New(func() time.Time { return w.now() })}
		m.redis.Hook = func(c *redissim.Command) redissim.Answer { return w.hook(m, c) }
		m.redis.Rewrite, m.redis.Refuse = rewrite, m.refuseDial
		w.masters = append(w.masters, m)
	}
	for i := range n {
		sh := &shard{
			w: w, on: w.masters[i*masters/n], number: i, tag: tagOf(i, n),
			inside: inside{starts: map[int]int64{}, looked: map[int]int64{}, heads: map[int]int64{}, books: map[int][]counted{}, aligned: map[banned]bool{}, sealed: newSealedOf()}, furthest: map[int]int64{}, moved: map[int]int64{}, began: map[int]int64{}, counted: map[string]bool{}, opened: map[string]bool{},
			torn: map[string]bool{}, evicted: map[string]bool{},
		}
		sh.on.shards = append(sh.on.shards, sh)
		w.shards = append(w.shards, sh)
	}
	for _, m := range w.masters {
		m.histories = []history{m.snapshot()}
	}
}

// tagOf returns the prefix of a shard's keys, as the design defines it.
func tagOf(shard, of int) string {
	if of == 1 {
		return prefix + ":{0}:"
	}
	return fmt.Sprintf("%s:{%s}:%d:", prefix, ranking.Tag(shard, ledger.Shards(of)), of)
}

// has returns the shard of a key that is sent to a master.
func (m *master) has(key string) *shard {
	for _, sh := range m.shards {
		if strings.HasPrefix(key, sh.tag) {
			return sh
		}
	}
	panic(fmt.Sprintf("simulate: master %d is sent key %s", m.number, key))
}

// named names the shard in the story if there are several.
func (sh *shard) named() string {
	if len(sh.w.shards) == 1 {
		return ""
	}
	return fmt.Sprintf(" on shard %d", sh.number)
}

// named names the master in the story if there are several.
func (m *master) named() string {
	if len(m.w.masters) == 1 {
		return "Redis"
	}
	return fmt.Sprintf("master %d", m.number)
}

func (sh *shard) key(name string) string { return sh.tag + name }

// hash returns the content of a hash by its name.
func (sh *shard) hash(name string) map[string]string {
	all := map[string]string{}
	reply, _ := sh.on.redis.Do("HGETALL", sh.key(name)).([]any)
	for i := 0; i+1 < len(reply); i += 2 {
		all[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
	}
	return all
}

func (sh *shard) exists(name string) bool {
	return sh.on.redis.Do("EXISTS", sh.key(name)) == int64(1)
}

// names returns the names of the shard's keys.
func (sh *shard) names() (all []string) {
	for _, key := range sh.on.redis.Keys() {
		if name, is := strings.CutPrefix(key, sh.tag); is {
			all = append(all, name)
		}
	}
	return all
}

// ledger returns the shard's ledger by partition.
func (sh *shard) ledger() map[int]string {
	all := map[int]string{}
	for field, text := range sh.hash(ledgerKey) {
		all[sh.w.idOf(field)] = text
	}
	return all
}

// ledgers returns the shards' ledgers in order.
func (w *world) ledgers() (all stands) {
	for _, sh := range w.shards {
		all = append(all, sh.ledger())
	}
	return all
}

// stands holds the ledgers of several shards by partition.
type stands []map[int]string

// at reports whether a partition is at an offset on every shard.
func (all stands) at(partition int, offset int64) bool {
	want := fmt.Sprint(offset)
	return !slices.ContainsFunc(all, func(one map[int]string) bool { return one[partition] != want })
}

// of describes the positions of a partition: one text if all shards are equal.
func (all stands) of(partition int) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one[partition]
	}
	if slices.Max(texts) == slices.Min(texts) {
		return texts[0]
	}
	for i := range texts {
		if texts[i] == "" {
			texts[i] = "-"
		}
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// lowest returns the offset before which every event of a partition counts on all shards that have the
// partition; false if none has.
func (all stands) lowest(partition int) (lowest int64, begun bool) {
	for _, one := range all {
		text, ok := one[partition]
		if !ok {
			continue
		}
		from, _, _ := parse(strings.TrimPrefix(text, "torn:"))
		if !begun || from < lowest {
			lowest = from
		}
		begun = true
	}
	return lowest, begun
}

func (all stands) String() string {
	said := map[int]string{}
	for _, one := range all {
		for p := range one {
			said[p] = all.of(p)
		}
	}
	return positions(said)
}

// --- the states to which a master may go back ------------------------------------------

// history is the state of a master.
type history struct {
	redis  redissim.Snapshot
	inside []inside // per shard
	drops  map[string]bool
	at     time.Time
}

func (in *inside) clone() inside {
	return inside{maps.Clone(in.starts), maps.Clone(in.looked), maps.Clone(in.heads), slices.Clone(in.lost), maps.Clone(in.books), maps.Clone(in.aligned), in.sealed.clone(), in.period}
}

func (m *master) snapshot() history {
	h := history{redis: m.redis.Snapshot(), drops: maps.Clone(m.w.dropped), at: time.Now()}
	for _, sh := range m.shards {
		h.inside = append(h.inside, sh.clone())
	}
	return h
}

func (m *master) restore(h history) {
	m.redis.Restore(h.redis)
	m.w.dropped, m.changed = maps.Clone(h.drops), time.Now()
	for i, sh := range m.shards {
		sh.inside = h.inside[i].clone()
		sh.since = sh.origins()
	}
	m.whole()
}

// whole records that nothing on a master is torn or evicted any more.
func (m *master) whole() {
	m.damaged, m.w.dropping = false, nil
	for _, sh := range m.shards {
		clear(sh.torn)
		clear(sh.evicted)
		sh.half, sh.namesDue = false, nil
	}
}

// settles records that a rebuild's swap has replaced what was torn or evicted on a shard. Exceptions are
// keys of windows that the rebuild had found complete and kept, and the names, which the rebuild adds after
// its last swap.
func (sh *shard) settles(by *process) {
	clear(sh.torn)
	maps.DeleteFunc(sh.evicted, func(key string, _ bool) bool { return !sh.misses(strings.TrimPrefix(key, sh.tag)) })
	sh.half = false
	if sh.evicted[sh.key(namesKey)] {
		sh.namesDue = by
	}
	sh.settled()
}

// addedNames records that a rebuild has ended and has added names to all shards.
func (w *world) addedNames(by *process) {
	for _, sh := range w.shards {
		if sh.namesDue == by {
			delete(sh.evicted, sh.key(namesKey))
			sh.namesDue = nil
			sh.settled()
		}
	}
}

// settled records that a master is whole again if nothing on it is torn or evicted.
func (sh *shard) settled() {
	if !slices.ContainsFunc(sh.on.shards, func(o *shard) bool { return o.half || len(o.torn)+len(o.evicted) > 0 }) {
		sh.on.whole()
	}
}

// misses reports whether an evicted key is still missing.
func (sh *shard) misses(name string) bool {
	if name == namesKey {
		return true
	}
	listed := sh.hash(windowsKey)
	if name != windowsKey {
		text := listed[strings.TrimSuffix(name, hiddenSuffix)]
		return text != "" && !sh.w.over(text) && sh.lacks(strings.TrimSuffix(name, hiddenSuffix), text)
	}
	return slices.ContainsFunc(sh.names(), func(set string) bool {
		ofRebuild := strings.HasPrefix(set, "~")
		return strings.Contains(set, ":") && !ofRebuild && listed[strings.TrimSuffix(set, hiddenSuffix)] == ""
	})
}

// keep stores the current state, so that the master may go back to it.
func (m *master) keep() {
	if m.damaged {
		return
	}
	const most = 40
	if len(m.histories) == most {
		m.histories = slices.Delete(m.histories, 1, 2)
	}
	m.histories = append(m.histories, m.snapshot())
}
