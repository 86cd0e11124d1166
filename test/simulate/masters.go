package simulate

// This file lists the faults of Redis itself: usually one master goes back, is lost or is unavailable while
// the others continue, and sometimes all of them.

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/standings/standings/test/simulate/redissim"
)

// struck returns the masters that a fault affects; usually one.
func (w *world) struck(n int) []*master {
	if i := n % (6 * len(w.masters)); i < len(w.masters)*5 {
		return w.masters[i%len(w.masters):][:1]
	}
	return w.masters
}

// allMasters returns a fault's number that strikes all of count masters.
func allMasters(count int) int { return 6*count - 1 }

// happenToRedis executes a fault of Redis itself, and reports whether it had an effect.
func (w *world) happenToRedis(f fault) bool {
	switch f.kind {
	case rollback:
		return w.goesBack(f.n)
	case wipe:
		return w.wipes(f.n)
	case evict:
		return w.evicts(f.n)
	case hold:
		sh := w.shards[f.n%len(w.shards)]
		sh.on.redis.Do("SET", sh.key(holdKey), "somebody", "PX", fmt.Sprint(1000+f.n%4000))
		w.tellf("somebody holds the boards%s", sh.named())
	case clock:
		jump := time.Duration(f.n%(6*3600)-3*3600) * time.Second
		w.notesOver()
		if w.setup.Added != nil {
			w.sways(f.n)
			break
		}
		w.jumps(jump)
		w.tellf("Redis's clock jumps by %v", jump)
	case leap:
		return w.leaps(f.n)
	case flush:
		m := w.struck(f.n)[0]
		if m.redis.FlushScripts() == 0 {
			return false
		}
		w.tellf("%s forgets its scripts", m.named())
	case masterAway, masterSlow, masterFull:
		return w.ail(f)
	case reunite:
		for _, p := range w.processes {
			if p.id == f.n {
				w.reunite(p)
			}
		}
		return true
	default:
		panic("simulate: nothing happens by " + f.kind)
	}
	return true
}

// goesBack makes masters go back, each to a state of its own, and reports whether a ledger went back.
func (w *world) goesBack(n int) bool {
	idle, went := w.atEnds(), false
	for _, m := range w.struck(n) {
		went = m.goesBack(n) || went
	}
	if went && idle && w.allRead() {
		w.count(rollback + ", and nothing comes after")
	}
	if went && len(w.masters) > 1 {
		w.count(oneGoesBack)
	}
	return went
}

func (m *master) goesBack(n int) bool {
	h := m.histories[n%len(m.histories)]
	now, was := m.redis.Dump(), m.ledgers().String()
	m.restore(h)
	for _, sh := range m.shards {
		sh.known = nil // Redis does not tell that it went back
	}
	if m.redis.Dump() == now {
		return false
	}
	m.w.tellf("%s goes back %.1f s: the ledger is %s", m.named(), time.Since(h.at).Seconds(), m.ledgers())
	m.reconnects(n)
	return m.ledgers().String() != was // otherwise only the workers' reports or a rebuild's keys went back
}

// ledgers returns the ledgers of the master's shards.
func (m *master) ledgers() (all stands) {
	for _, sh := range m.shards {
		all = append(all, sh.ledger())
	}
	return all
}

// wipes wipes masters, and reports whether they had any data.
func (w *world) wipes(n int) (some bool) {
	for _, m := range w.struck(n) {
		if !slices.ContainsFunc(m.ledgers(), func(one map[int]string) bool { return len(one) > 0 }) {
			continue
		}
		some = true
		for _, sh := range m.shards {
			sh.loses()
		}
		m.restore(m.histories[0])
		w.tellf("%s is wiped", m.named())
		m.reconnects(n)
	}
	if some && len(w.masters) > 1 {
		w.count(oneWiped)
	}
	return some
}

// besideHidden returns the keys of hidden sets and of the sorted sets next to them.
func (m *master) besideHidden(keys []string) (some []string) {
	for _, key := range keys {
		shown, hides := strings.CutSuffix(key, hiddenSuffix)
		if hides || slices.Contains(keys, shown+hiddenSuffix) {
			some = append(some, key)
		}
	}
	return some
}

func (w *world) evicts(n int) bool {
	m := w.struck(n)[0]
	for _, sh := range m.shards {
		sh.known = nil // the ledger may be gone
	}
	keys := m.redis.Keys()
	if len(keys) == 0 {
		return false
	}
	if sets := m.besideHidden(keys); len(sets) > 0 && n%4 != 0 {
		keys = sets // they are few among all keys
	}
	if final := m.finalSets(); len(final) > 0 && n%4 != 0 {
		keys = final
	}
	key := keys[n%len(keys)]
	sh := m.has(key)
	// Losses of these keys cannot be detected. Without the origins it is unknown that a topic was not read
	// from its beginning, and a rebuild counts earlier events. Without the bans, banned members are shown
	// until a replica checks again, and what they earn until then is lost. Without the records of seals,
	// the next revision is unknown.
	if name := strings.TrimPrefix(key, sh.tag); name == "banned" || name == holdKey || strings.Contains(name, "~") || name == originKey || name == "workers" || name == "rules" || name == "final" {
		return false
	}
	m.damaged, sh.evicted[key], m.changed = true, true, time.Now()
	if key == sh.key(ledgerKey) {
		clear(sh.torn) // the torn mark is gone with the ledger
	}
	if key == sh.key(namesKey) {
		sh.namesDue = nil
	}
	m.redis.Evict(key)
	w.tellf("%s evicts %s", m.named(), key)
	return true
}

// leaps reports whether the clock passed the expiry of a listed window. It leaps only once, because expired
// windows do not come back.
func (w *world) leaps(n int) bool {
	if w.leapt {
		return false
	}
	w.leapt = true
	lived := w.living()
	jump := time.Duration(15+n%76)*day + 12*time.Hour
	w.jumps(jump)
	w.tellf("Redis's clock leaps ahead by %v", jump)
	return w.living() < lived
}

// living returns the number of listed windows that have not expired.
func (w *world) living() (n int) {
	for _, sh := range w.shards {
		for _, listing := range sh.hash(windowsKey) {
			if !w.over(listing) {
				n++
			}
		}
	}
	return n
}

// reconnects cuts all connections to a master, as a failover does. It does not if a dump was restored in
// place, or if a proxy hides that another process has taken over.
func (m *master) reconnects(n int) {
	if n>>8&1 == 1 {
		if n>>9&1 == 1 { // the connections through a proxy remain
			m.redis.Restart()
		}
		return
	}
	for _, c := range m.w.calls {
		if c.command != nil && c.shard.on == m && !c.taken {
			c.reply(redissim.Answer{Cut: true}, nil)
		}
	}
	m.redis.Restart()
	m.redis.Cut("")
	if n>>9&1 == 1 {
		m.refusing.Store(time.Now().Add(time.Duration(n>>10%4000) * time.Millisecond).UnixNano())
		m.w.tellf("and takes no connections for a while")
	}
}

// refuseDial is called before a connection to the master opens. A refusal takes a time that always differs:
// a refused client dials again a second later, and a caller with a fixed interval, such as a worker that
// reports, calls again at the same moment.
func (m *master) refuseDial(string) error {
	if time.Now().UnixNano() >= m.refusing.Load() {
		return nil
	}
	n := m.w.refusals.Add(1)
	time.Sleep(latency + time.Duration(n*7919%9973))
	return syscall.ECONNREFUSED
}

// atEnds reports whether every ledger is at its log's end.
func (w *world) atEnds() bool {
	ledgers := w.ledgers()
	return !slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return !ledgers.at(p.id, p.stable()) })
}

// allRead reports whether everything that will be published was published. After that, only a worker's
// periodic check detects a change.
func (w *world) allRead() bool {
	for _, f := range w.events {
		if f.kind == publish || f.kind == endOpen {
			return false
		}
	}
	return true
}
