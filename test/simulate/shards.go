package simulate

// Shards and the masters that they lie on: what each shard has, with what the simulation knows
// of how it came there.

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

// Keys of a shard, behind its tag, by their names in the design.
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
	damaged   bool         // it is in a state that only an operator can mend
	refusing  atomic.Int64 // until when it takes no connections, Unix ns
	changed   time.Time    // when it went back last, or lost something
	outage    outage
}

// shard is one of the shards.
type shard struct {
	w      *world
	on     *master
	number int
	tag    string // what its keys begin with

	inside
	since       map[int]ledger.Origin // origins, as they stood last
	furthest    map[int]int64         // where partitions ever stood
	moved       map[int]int64         // where pieces ever brought them
	began       map[int]int64         // the highest offsets at which they ever began, or went on behind a gap
	counted     map[string]bool       // by topic: some event has
	torn        map[string]bool       // ledgers, by field
	evicted     map[string]bool       // keys
	known       map[int]int64         // how far partitions were when it was lost
	half        bool                  // a swap died midway
	namesDue    *process              // the rebuild that has swapped since Redis evicted the names, and adds them afterwards
	addedBefore bool                  // the period, ever
	opened      map[string]bool       // boards that were ever seen to have a window, if there is little room
}

// inside is what the simulation knows of how a shard came to where it is: it goes back with it.
type inside struct {
	starts  map[int]int64 // where partitions began
	looked  map[int]int64 // Redis's clock then, ms
	heads   map[int]int64 // where logs began then, if records without a time were left out from there on
	lost    []gone
	books   map[int][]counted // by partition: which records count by which configuration
	aligned map[banned]bool   // who was hidden and has to stay so
	sealed  sealedOf
	period  hasPeriod
}

// gone are events that a skip went over: of [from, to) those whose member's hash isn't
// below the sweep's.
type gone struct {
	partition int
	from, to  int64
	hash      uint64
	looked    int64 // Redis's clock then, ms
}

func (s *setup) shards() ledger.Shards { return ledger.Shards(max(1, s.Shards)) }

// build makes the masters and their shards, which lie on them as contiguous ranges of slots do.
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

// tagOf is what a shard's keys begin with, as the design writes it.
func tagOf(shard, of int) string {
	if of == 1 {
		return prefix + ":{0}:"
	}
	return fmt.Sprintf("%s:{%s}:%d:", prefix, ranking.Tag(shard, ledger.Shards(of)), of)
}

// has is the shard of a key that is sent to a master.
func (m *master) has(key string) *shard {
	for _, sh := range m.shards {
		if strings.HasPrefix(key, sh.tag) {
			return sh
		}
	}
	panic(fmt.Sprintf("simulate: master %d is sent key %s", m.number, key))
}

// named names the shard in a story, where there are several.
func (sh *shard) named() string {
	if len(sh.w.shards) == 1 {
		return ""
	}
	return fmt.Sprintf(" on shard %d", sh.number)
}

// named names the master, where there are several.
func (m *master) named() string {
	if len(m.w.masters) == 1 {
		return "Redis"
	}
	return fmt.Sprintf("master %d", m.number)
}

func (sh *shard) key(name string) string { return sh.tag + name }

// hash is a hash of the shard, by its name.
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

// names are those of the shard's keys.
func (sh *shard) names() (all []string) {
	for _, key := range sh.on.redis.Keys() {
		if name, is := strings.CutPrefix(key, sh.tag); is {
			all = append(all, name)
		}
	}
	return all
}

// ledger is what stands in it, by partition.
func (sh *shard) ledger() map[int]string {
	all := map[int]string{}
	for field, text := range sh.hash(ledgerKey) {
		all[sh.w.idOf(field)] = text
	}
	return all
}

// ledgers are what stands in the shards, in their order.
func (w *world) ledgers() (all stands) {
	for _, sh := range w.shards {
		all = append(all, sh.ledger())
	}
	return all
}

// stands are the ledgers of several shards, by partition.
type stands []map[int]string

// at reports whether every shard has a partition at an offset.
func (all stands) at(partition int, offset int64) bool {
	want := fmt.Sprint(offset)
	return !slices.ContainsFunc(all, func(one map[int]string) bool { return one[partition] != want })
}

// of is where a partition stands, in words: the one text where all shards have the same.
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

// lowest is the offset before which every event of a partition counts, in the shards that have
// it; false where none has.
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

// --- what a master goes back to --------------------------------------------------------

// history is what stands on a master.
type history struct {
	redis  redissim.Snapshot
	inside []inside // of its shards
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

// whole notes that nothing on a master is torn or evicted any more.
func (m *master) whole() {
	m.damaged, m.w.dropping = false, nil
	for _, sh := range m.shards {
		clear(sh.torn)
		clear(sh.evicted)
		sh.half, sh.namesDue = false, nil
	}
}

// settles notes that a rebuild's swap has replaced what was torn or evicted of a shard, but for what was evicted of windows
// that the rebuild had found whole by then and kept, and for the names, which the rebuild adds after its last swap.
func (sh *shard) settles(by *process) {
	clear(sh.torn)
	maps.DeleteFunc(sh.evicted, func(key string, _ bool) bool { return !sh.misses(strings.TrimPrefix(key, sh.tag)) })
	sh.half = false
	if sh.evicted[sh.key(namesKey)] {
		sh.namesDue = by
	}
	sh.settled()
}

// addedNames notes that a rebuild has ended, and added names to all shards.
func (w *world) addedNames(by *process) {
	for _, sh := range w.shards {
		if sh.namesDue == by {
			delete(sh.evicted, sh.key(namesKey))
			sh.namesDue = nil
			sh.settled()
		}
	}
}

// settled notes that a master is whole again once nothing on it is torn or evicted.
func (sh *shard) settled() {
	if !slices.ContainsFunc(sh.on.shards, func(o *shard) bool { return o.half || len(o.torn)+len(o.evicted) > 0 }) {
		sh.on.whole()
	}
}

// misses reports whether a key that was evicted is still missing, by its name.
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

// keep keeps a state that a master may go back to.
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
