package simulate

// This file adds a period while processes run: to all boards, to the list of one board, or to the boards
// that are not named. In order:
//
//	the configuration gets one more period   processes that start from then on have it; running processes
//	                                         keep the old configuration until they are stopped, one by one
//	the first process with it starts         each shard's schema gets the period, and the time since which
//	                                         it is counted
//	processes without it                     count nothing from then on, and halt, or refuse to start
//	a night passes                           later windows of the period begin, and must be whole
//
// Windows that start before `since` lack the events that were counted without the period, and must be shown
// as incomplete.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/simulate/redissim"
)

// addedFrom is the first seed of the worlds in which a period is added.
const addedFrom = int64(1) << 46

const (
	adds     = "the configuration has one more period"
	replaces = "a process without the added period is replaced"
	startOld = "a process without the added period starts"
	night    = "a night passes"

	extends       = "a period is added"
	extendsAgain  = "a period is added again, to a Redis that went back to before"
	extendsApart  = "a shard has an added period, and another lacks it"
	beginsWith    = "a shard begins with an added period"
	haltsWithout  = "a process without the added period halts"
	refusesToGo   = "a process without the added period refuses to start"
	goesOnWithout = "a process with the added period finishes a sweep of one without it"
	addedPartly   = "a window of an added period is shown as incomplete"
	addedLacking  = "a window of an added period lacks events, and is shown as incomplete"
	addedWhole    = "a window of an added period is whole"
	addedRebuilt  = "a rebuild makes windows of an added period whole"
)

const (
	// producersAhead is how far record times may be ahead of the present, and clockOff how far Redis's
	// clock may be off. Their sum is less than the hour by which Kafka accepts record times ahead of its
	// own clock.
	producersAhead = 30 * time.Minute
	clockOff       = 15 * time.Minute
	// addedAfter is the time by Redis's clock after which a window of the added period must start to lack
	// nothing.
	addedAfter = maxFuture + time.Hour + time.Millisecond
)

// addition is an added period, and where it is added.
type addition struct {
	period string
	board  string // the board to whose list it is added; empty: all boards
}

// of reports whether a window belongs to the added period, on a board to which it was added.
func (a *addition) of(board, period string) bool {
	return period == a.period && (a.board == "" || board == a.board || a.board == rules.AnyBoard && board != alwaysBoard)
}

// alwaysBoard has its own list with the period from the beginning, if the period is added to the boards
// that are not named.
const alwaysBoard = "eu"

// added changes the plan into one in which a period is added.
func (p *plan) added() {
	s := &p.setup
	if s.Disorder || s.MaxWindows > 0 || s.Names {
		return
	}
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0xadded))}
	kind := d.pick(0, 0, 1, 2)
	a := &addition{board: [...]string{"", "eu", rules.AnyBoard}[kind]}
	all := slices.DeleteFunc([]string{"daily", "monthly", "yearly", "all-time", "season", "to-come", "sprint", "sprint", "sprint", "dash", "dash", "dash"},
		func(name string) bool { return slices.Contains(s.Periods, name) })
	if a.period = pick(d, all...); a.board != "" {
		s.Periods = append(slices.Clone(s.Periods), a.period)
	}
	s.Added = a
	s.MaxPoints, s.Ahead, s.Less = 99_999_999, 0, 0
	for i := range s.Processes { // to finish a sweep under others' rules, a process needs the minimum of fold_memory
		s.Processes[i].foldMemory = memory.LeastMemory(maxEventBytes)
	}
	s.Bans, s.BannedBefore = false, nil
	unlike := []string{leap, bansMember, unbans, erases, bansAway}
	p.events = slices.DeleteFunc(p.events, func(f fault) bool { return slices.Contains(unlike, f.kind) || f.on == "ban" })
	p.counted = d.IntN(2) == 0
	at := 5 + d.IntN(90)
	if !p.counted {
		at += 40
	}
	p.events = append(p.events, fault{at: at, kind: adds, n: d.IntN(1 << 16)})
	for range 1 + d.IntN(3) {
		p.events = append(p.events, fault{at: at + d.IntN(80), kind: replaces, n: d.IntN(1 << 16)})
	}
	for range d.IntN(3) {
		p.events = append(p.events, fault{at: at + d.IntN(60), kind: startOld, n: d.IntN(1 << 16)})
	}
	if d.IntN(2) == 0 {
		p.events = append(p.events, fault{at: at, kind: pick(d, cutBefore, lostAnswer, silence, lateDone, lateDone, slow, slow, refused, dies, crash, crash), on: "extend", n: d.IntN(1 << 16)})
	}
	if d.IntN(2) == 0 {
		p.events = append(p.events, fault{at: at + d.IntN(30), kind: pick(d, rollback, rollback, wipe, crash), n: d.IntN(1 << 16)})
		if f := &p.events[len(p.events)-1]; f.kind == crash {
			f.at, f.on = at, inSweep
		}
	}
	if s.Shards < 2 && d.IntN(2) == 0 {
		p.events = append(p.events, fault{at: at + 20 + d.IntN(80), kind: rebuilds, n: d.IntN(1 << 16)})
	}
	falls := at + 10 + d.IntN(80)
	p.events = append(p.events, fault{at: falls, kind: night, n: d.IntN(1 << 16)})
	for range 1 + d.IntN(2) {
		again := p.sendings[d.IntN(len(p.sendings))]
		p.sendings = append(p.sendings, sending{partition: again.partition, records: again.records})
		p.events = append(p.events, fault{at: falls + 2 + d.IntN(60), kind: publish, n: len(p.sendings) - 1})
	}
}

// --- the product's configuration --------------------------------------------------------

// periodsOf returns the periods of a configuration, with the added one or without.
func (s *setup) periodsOf(has bool) []string {
	if s.Added != nil && s.Added.board == "" && has {
		return append(slices.Clone(s.Periods), s.Added.period)
	}
	return s.Periods
}

// listsOf returns the periods of the boards that have a list of their own.
func (s *setup) listsOf(has bool) map[string][]periods.Period {
	a := s.Added
	if a == nil || a.board == "" {
		return nil
	}
	var all, before []periods.Period
	for _, name := range s.Periods {
		all = append(all, periods.Period(name))
		if name != a.period {
			before = append(before, periods.Period(name))
		}
	}
	lists := map[string][]periods.Period{}
	if a.board == rules.AnyBoard {
		lists[alwaysBoard] = all
	}
	if lists[a.board] = before; has {
		lists[a.board] = all
	}
	return lists
}

// boardsOf returns the boards with fewer periods than the configuration, in the form that the fold needs.
func (s *setup) boardsOf(has bool) map[string]*fold.Board {
	lists := s.listsOf(has)
	if lists == nil {
		return nil
	}
	all := map[string]*fold.Board{}
	for name, list := range lists {
		all[name] = &fold.Board{}
		for i, period := range s.Periods {
			if slices.Contains(list, periods.Period(period)) {
				all[name].Periods |= 1 << i
			}
		}
	}
	return all
}

// withoutIt and withIt are the texts of the two sets of rules.
const withoutIt, withIt = "without the added period", "with the added period"

// addsRules sets the rules' text in a consumer's configuration.
func (p *process) addsRules(c *ingest.Config) {
	if p.w.setup.Added == nil {
		return
	}
	texts := map[bool]string{false: withoutIt, true: withIt}
	events := c.Events
	c.RulesText = texts[p.has]
	c.ReadRules = func(text string) (rulebook.Counting, error) {
		has := text == withIt
		if has && !p.has {
			return rulebook.Counting{}, errors.New("a period isn't enabled here")
		}
		return rulebook.Counting{Events: events, Windows: p.windows(has), Duplicates: c.Duplicates}, nil
	}
}

// extends adds the period to Redis before the process joins the group, as the consumer does at start. It
// reports whether the process may join.
func (p *process) extends() bool {
	if p.w.setup.Added == nil {
		return true
	}
	extend := func() error {
		for _, sh := range p.w.shards {
			s := p.store(sh)
			state, err := s.State(p.ending)
			if err != nil {
				return err
			}
			if _, err := s.Extend(p.ending, &state, maxFuture); err != nil {
				return err
			}
			if err := s.CheckSchema(state.Schema); err != nil {
				return err
			}
		}
		return nil
	}
	for {
		err := extend()
		if other := (*ranking.SchemaError)(nil); errors.As(err, &other) {
			if p.has || !strings.Contains(err.Error(), "also have the periods "+p.w.addedName()) {
				said := fmt.Sprintf("process %d refuses to start: %v", p.id, err)
				p.w.groundless.Store(&said)
			}
			p.lacks.Store(true)
			return false
		}
		if err == nil {
			return true
		}
		select {
		case <-time.After(time.Second + time.Duration(p.id)*1371*time.Microsecond):
		case <-p.Done():
			return false
		}
	}
}

// addedName returns the product's name for the added period.
func (w *world) addedName() string {
	a := w.setup.Added
	return ledger.Added{Board: a.board, Period: a.period}.String()
}

// --- events ------------------------------------------------------------------------------

// happensToPeriods executes an event about periods, and reports whether it had an effect.
func (w *world) happensToPeriods(f fault) bool {
	alive := w.alive()
	switch f.kind {
	case adds:
		return w.configuresPeriod(f.n)
	case replaces:
		old := slices.DeleteFunc(slices.Clone(alive), func(p *process) bool { return p.has })
		if len(old) == 0 {
			return false
		}
		p := old[f.n%len(old)]
		w.tellf("process %d is told to stop, and another comes", p.id)
		p.stopped = true
		p.end()
		w.launch(w.another(f.n >> 3))
	case startOld:
		if len(alive) > 3 {
			return false
		}
		w.launchAs(w.another(f.n), false)
	case night:
		w.falls(time.Duration(3+f.n%30) * time.Hour)
	}
	return true
}

func (w *world) configuresPeriod(n int) bool {
	if w.adds {
		return false
	}
	w.adds = true
	w.tellf("the configuration has one more period: %s", w.addedName())
	w.launch(w.another(n))
	return true
}

// falls lets a night pass: records that are sent afterwards have times of the next morning.
func (w *world) falls(by time.Duration) {
	w.notesOver()
	w.slept += by
	w.jumps(by)
	w.tellf("a night of %v passes", by)
}

// sways sets Redis's clock off by some minutes.
func (w *world) sways(n int) {
	off := time.Duration(n%int(2*clockOff/time.Second))*time.Second - clockOff
	w.jumps(off - (time.Duration(w.skew.Load()) - w.slept))
	w.tellf("Redis's clock is off by %v", off)
}

var occurredField = regexp.MustCompile(`"occurred_at":(\d+)`)

// timely returns a sending with its record times shifted to the present.
func (w *world) timely(s *sending) *sending {
	if w.setup.Added == nil || len(s.records) == 0 {
		return s
	}
	latest := slices.MaxFunc(s.records, func(a, b record) int { return int(a.time - b.time) }).time
	now := time.Now().Add(w.slept)
	by := int64(0)
	if most := now.Add(producersAhead).UnixMilli(); latest > most || w.slept > 0 && latest < most-2*time.Hour.Milliseconds() {
		by = most - latest - int64(w.step%7)*10*time.Minute.Milliseconds()
	}
	if by == 0 {
		return s
	}
	moved := *s
	moved.records = slices.Clone(s.records)
	for i := range moved.records {
		r := &moved.records[i]
		r.time += by
		if r.value != nil {
			r.value = occurredField.ReplaceAllFunc(r.value, func(text []byte) []byte {
				at, err := strconv.ParseInt(string(occurredField.FindSubmatch(text)[1]), 10, 64)
				if err != nil {
					panic(err)
				}
				return fmt.Appendf(nil, `"occurred_at":%d`, at+by)
			})
		}
	}
	return &moved
}

// endsWithout stops the processes without the period at the end, so that others replace them.
func (w *world) endsWithout() {
	if w.setup.Added == nil {
		return
	}
	if w.slept == 0 {
		w.falls(20 * time.Hour)
	}
	w.adds = true
	for _, p := range w.alive() {
		if !p.has {
			w.tellf("process %d is told to stop: it lacks the added period", p.id)
			p.stopped = true
			p.end()
		}
	}
}

// noteRefusals records the processes that have refused to start.
func (w *world) noteRefusals() {
	for _, p := range w.processes {
		if p.lacks.Load() && !p.stopped && !p.dead {
			w.tellf("process %d refuses to start: it lacks the added period", p.id)
			w.count(refusesToGo)
			p.stopped = true
			if len(w.alive()) == 0 {
				w.launch(w.another(p.id))
			}
		}
	}
}

// --- checks ---------------------------------------------------------------

// hasPeriod holds the state of the added period on a shard.
type hasPeriod struct {
	in     bool           // the schema has the period
	until  int64          // Unix ms: windows that start before this lack the events counted without the period
	whole  int64          // Unix ms: windows that start at this time or later lack nothing
	before map[int]string // the ledger when the period was added, by partition
}

// noteAdded records that a call may have added the period to a shard, and checks that afterwards no process
// without the period counts there.
func (sh *shard) noteAdded(c *call, r redissim.Result) {
	w := sh.w
	if w.setup.Added == nil {
		return
	}
	before, is := sh.period.in, sh.keepsAdded()
	if sh.period.in = is; is && !before {
		if sh.period = (hasPeriod{in: true, before: sh.ledger()}); c.kind == "extend" {
			sh.period.until = w.now().Add(addedAfter).UnixMilli()
			sh.period.whole = sh.period.until + 1 // a fraction of a millisecond is rounded up
			w.count(extends + w.setup.Added.to())
			if sh.addedBefore {
				w.count(extendsAgain)
			}
			sh.addedBefore = true
			w.tellf("the period is added%s", sh.named())
			sh.on.keep()
		} else {
			w.count(beginsWith)
		}
	}
	if answered := answered(r); c.kind == "swap" && answered == "swapped" && r.Writes > 0 {
		if is && !c.from.has {
			w.failf("rebuild %d swaps boards without the added period%s", c.from.id, sh.named())
		}
		sh.period.until = 0
	} else if c.kind == "apply" && answered == "applied" {
		if is && !c.from.has {
			w.failf("process %d counts without the added period%s", c.from.id, sh.named())
		}
		_, expected, _ := piece(c.command.Args)
		if _, by, ok := strings.Cut(expected, "#"); ok && by == rules.Fingerprint(withoutIt) && c.from.has {
			w.count(goesOnWithout)
		}
	}
	if slices.ContainsFunc(w.shards, func(o *shard) bool { return o.period.in != is && len(o.ledger()) > 0 }) {
		w.count(extendsApart)
	}
}

// to names the boards to which the period is added.
func (a *addition) to() string {
	switch a.board {
	case "":
		return ": to all boards"
	case rules.AnyBoard:
		return ": to the boards that aren't named"
	}
	return ": to the list of a board"
}

// keepsAdded reports whether the shard's schema has the period.
func (sh *shard) keepsAdded() bool {
	text, ok := sh.on.redis.Do("GET", sh.key(schemaKey)).(string)
	if !ok {
		return false
	}
	var schema struct {
		Boards  map[string][]string `json:"boards"`
		Periods map[string]any      `json:"periods"`
	}
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		sh.w.failf("the schema%s is %q: %v", sh.named(), text, err)
	}
	a := sh.w.setup.Added
	if a.board != "" {
		return slices.Contains(schema.Boards[a.board], a.period)
	}
	return schema.Periods[a.period] != nil
}

// countedWithout reports whether a window (its name and its listing) lacks events that were counted without
// its period.
func (sh *shard) countedWithout(name, text string) bool {
	parts := strings.Split(name, ":")
	l, err := oracle.ReadListing(text)
	return sh.w.setup.Added != nil && err == nil && sh.w.setup.Added.of(parts[0], parts[1]) && l.Start < sh.period.until
}

// lacked returns a function that reports the periods of a board without which a record was counted; nil if
// it was counted with all.
func (w *world) lacked(partition int, r *stored) func(board, period string) bool {
	user, ok := userOf(r.value)
	if w.setup.Added == nil || !ok {
		return nil
	}
	if before := w.shardOf(user).period.before[partition]; before != "" && in(before, r.offset, hashOf(user)) {
		return w.setup.Added.of
	}
	return nil
}

// setsAside returns the windows of an added period that are shown as incomplete, which are excluded from
// the comparison. It checks that exactly those windows that may lack events are shown as incomplete.
func (sh *shard) setsAside(want, is map[string]map[string]uint64, all ...map[string]string) (some []string) {
	w := sh.w
	a := w.setup.Added
	if a == nil {
		return nil
	}
	since, err := ranking.TakeSince(sh.hash(originKey))
	if err != nil {
		w.failf("the origins%s: %v", sh.named(), err)
		return nil
	}
	state := &ledger.State{Since: since}
	seen := map[string]bool{}
	for _, listings := range all {
		for name, text := range listings {
			parts := strings.Split(name, ":")
			if seen[name] || len(parts) != 3 || !a.of(parts[0], parts[1]) {
				continue
			}
			seen[name] = true
			l, err := oracle.ReadListing(text)
			if err != nil {
				w.failf("the listing of %s: %v", name, err)
				return nil
			}
			counted := ranking.CountedSince(state, parts[0], parts[1])
			partly := l.Start < counted
			switch {
			case sh.countedWithout(name, text) && !partly:
				w.failf("a window that was counted without its period is shown as whole: %s%s starts at %d, and since %d the period is counted; it is shown as counted since %d", name, sh.named(), l.Start, sh.period.until, counted)
			case l.Start >= sh.period.whole && partly:
				w.failf("a window that starts after its period was added is shown as incomplete: %s%s starts at %d, and it is shown as counted since %d", name, sh.named(), l.Start, counted)
			}
			if partly {
				w.count(addedPartly)
				if !maps.Equal(want[name], is[name]) {
					w.count(addedLacking)
				}
				some = append(some, name)
				continue
			}
			w.count(addedWhole)
			if sh.period.whole > 0 && l.Start < sh.period.whole {
				w.count(addedRebuilt)
			}
		}
	}
	return some
}

// haltsWithout counts the halts of a process that name the period that it lacks.
func (p *process) haltsWithout(what string) {
	if p.w.setup.Added == nil || p.has {
		return
	}
	if strings.Contains(what, "also have the periods "+p.w.addedName()) {
		p.w.telling.Lock()
		p.w.seen[haltsWithout]++
		p.w.telling.Unlock()
	}
}
