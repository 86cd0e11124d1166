package simulate

// This file makes worlds with ten thousand boards: more windows than one call may process, near or beyond
// the limit on listed windows, with rebuilds, drops and retirement.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/simulate/redissim"
)

const (
	drops   = "boards are dropped"
	retires = "windows that are over are retired"

	leftNothing = "a rebuild that nothing hindered leaves nothing behind"
	fullRoom    = "as many windows are listed as new boards may open"
)

// crowdEvery selects the seeds of worlds with many boards: its multiples. Such a world takes as long as a
// hundred others.
const crowdEvery = 1000

// crowd draws a world with many boards.
func (d *drawer) crowd(p *plan) {
	s := &p.setup
	s.Partitions = d.pick(1, 2, 3)
	s.Zone = pick(d, "UTC", "Europe/Berlin")
	s.WeekStart = pick(d, "monday", "sunday")
	s.Periods = pick(d, []string{"daily"}, []string{"daily", "yearly"}, []string{"weekly", "monthly"})
	s.Layout = pick(d, "readable", "wide")
	s.MaxPoints = 99_999_999
	s.FetchBytes = d.pick(16<<10, 64<<10)
	s.Start = pick(d, starts.FromWindow, starts.FromEarliest)
	s.Continue = d.IntN(3) == 0
	d.small = d.IntN(2) == 0
	for range d.pick(1, 1, 2) {
		s.Processes = append(s.Processes, size{foldMemory: 32 << 20, pieceTime: 5 * time.Millisecond})
		if d.small {
			s.Processes[len(s.Processes)-1].foldMemory = int64(d.pick(512, 1024)) << 10
		}
	}
	turnover := s.Periods[0] == "daily" && d.IntN(2) == 0
	d.crowdedRecords(p, 10_800/len(s.Periods), turnover)
	s.Windows = s.windows(p.sendings)
	beyond := turnover
	switch s.MaxWindows = s.Windows*10/9 + 1; d.IntN(4) { // the last tenth is for boards that already have a window
	case 0:
		s.MaxWindows *= 2
	case 1:
		s.MaxWindows, beyond = s.MaxWindows*3/4, true
	}
	d.faults(p)
	for i := range p.events {
		if f := &p.events[i]; f.kind == publish {
			f.at %= 60 // so that faults happen while events are counted
		}
	}
	if d.IntN(2) == 0 {
		p.events = append(p.events, fault{at: 80 + d.IntN(120), kind: rebuilds, n: d.IntN(1 << 16)})
		if d.IntN(2) == 0 {
			d.swap(p, 240)
		}
	}
	if d.IntN(4) > 0 {
		at := 60 + d.IntN(100)
		p.events = append(p.events, fault{at: at, kind: drops, n: d.IntN(1 << 16)})
		if d.IntN(2) == 0 {
			p.events = append(p.events, fault{at: at, kind: pick(d, cutBefore, lostAnswer, lateDone, slow, dies, crash), on: drops, n: d.IntN(1 << 16)})
		}
	}
	if turnover {
		s.Ahead, s.MaxWindows = 120*day, s.Windows*3/5
		const in20Days = 5 // the n of a leap by 20 days
		p.events = slices.DeleteFunc(p.events, func(f fault) bool { return f.kind == clock || f.kind == leap })
		p.events = append(p.events, fault{at: 150, kind: leap, n: in20Days}, fault{at: 160, kind: retires, n: d.IntN(1 << 16)})
	}
	if beyond { // a swap opens no window beyond the limit, so an event that was refused may count in some of its boards
		p.events = slices.DeleteFunc(p.events, func(f fault) bool { return f.kind == rebuilds })
	}
}

// crowdedRecords draws events of eight boards each, most of them new. With turnover, the second half
// belongs to later windows, which live when those of the first half have expired.
func (d *drawer) crowdedRecords(p *plan, boards int, turnover bool) {
	const together = 8 // boards per event
	at, group, user := beginning.Add(-10*time.Hour).UnixMilli(), 0, 0
	groups := boards / together
	for group < groups {
		s := sending{partition: d.IntN(p.setup.Partitions), codec: int8(d.pick(0, 0, 1))}
		if d.small { // decompression would need too much memory
			s.codec = 0
		}
		if turnover && group > groups/2 {
			at = max(at, beginning.Add(20*day).UnixMilli())
		}
		for range 20 + d.IntN(30) {
			of := group
			if group > 0 && d.IntN(4) == 0 {
				of = d.IntN(group)
			} else {
				group++
			}
			if d.IntN(4) > 0 {
				user++
			}
			r := record{time: at}
			if r.value = []byte("poison"); d.IntN(40) > 0 {
				var names []string
				for i := range together {
					names = append(names, fmt.Sprintf(`"b%d"`, of*together+i))
				}
				r.value = fmt.Appendf(nil, `{"user_id":"m%d","points":%d,"occurred_at":%d,"board":[%s]}`, user, 1+d.IntN(50), at-d.Int64N(3_600_000), strings.Join(names, ","))
			}
			s.records = append(s.records, r)
		}
		p.sendings = append(p.sendings, s)
	}
	p.first = len(p.sendings) * d.pick(1, 2) / 3
}

// windows returns the number of windows if no event were refused.
func (s *setup) windows(sendings []sending) int64 {
	o := oracle.New(s.oracle())
	for i := range sendings {
		for j := range sendings[i].records {
			o.Add(oracle.Record{Partition: i, Offset: int64(j), Time: sendings[i].records[j].time, Value: sendings[i].records[j].value})
		}
	}
	want, err := o.Expected(beginning)
	if err != nil {
		panic(err) // the plan is wrong
	}
	return int64(len(want.Windows))
}

func (w *world) crowded() bool { return w.setup.Windows > 0 }

// sendOn starts a process that drops boards or retires windows.
func (w *world) sendOn(f fault) {
	if f.kind == drops {
		if one := []string{"us", "eu"}[f.n%2]; !w.crowded() {
			w.drop(func(board string) bool { return board == one })
			return
		}
		w.drop(func(board string) bool { return strings.HasSuffix(board, fmt.Sprint(f.n%10)) })
		return
	}
	w.errandOf(retires, func(p *process) (int64, error) {
		n, err := p.store(w.shards[0]).Retire(p)
		return int64(n), err
	})
}

// drop drops the boards that match.
func (w *world) drop(match func(string) bool) {
	w.errandOf(drops, func(p *process) (int64, error) {
		p.match = match
		v, err := inventory.NewView(p, p.clients[0], prefix, 1, redisTimeout)
		if err != nil {
			return 0, err
		}
		found, err := v.SurveyBoards(p, match)
		if err != nil {
			return 0, err
		}
		return v.DropBoards(p, found, 5*time.Millisecond, nil)
	})
}

// errandOf starts a process for one task.
func (w *world) errandOf(kind string, do func(*process) (int64, error)) {
	p := w.visitor(size{})
	p.errand = kind
	w.errands++
	w.tellf("%s, by process %d", kind, p.id)
	go func() {
		defer close(p.done)
		p.did, p.err = do(p.process)
	}()
}

// returns records the result of such a task.
func (w *world) returns(r *rebuilding) {
	w.tellf("%s: %d of them, by process %d: %v", r.errand, r.did, r.id, r.err)
	if r.did > 0 {
		w.count(r.errand)
	}
}

// drops records what a call has dropped.
func (w *world) drops(c *call, r redissim.Result) {
	if c.command.Name() != "dropboards.lua" {
		return
	}
	sh := c.shard
	listed := sh.hash(windowsKey)
	for _, name := range arguments(c.command.Args) {
		text, is := listed[name]
		switch there := sh.exists(name); {
		case !is && !there:
			w.dropped[name] = true
		case is && !there && !w.over(text) && !sh.evicted[sh.key(name)]:
			w.tellf("the drop dies midway, in %s", name)
			w.dropping, sh.on.damaged = c.from.match, true
		}
	}
	if w.dropping != nil && !r.Torn() {
		sh.on.whole()
	}
	sh.on.keep()
}

// leavesNothing checks that an undisturbed rebuild leaves no keys behind.
func (w *world) leavesNothing(r *rebuilding) {
	if r.struck || slices.ContainsFunc(w.rebuilds, func(o *rebuilding) bool { return o != r && o.errand == "" }) {
		return
	}
	w.count(leftNothing)
	for _, sh := range w.shards {
		left := slices.DeleteFunc(sh.names(), func(name string) bool { return !strings.HasPrefix(name, "~") })
		if len(left) > 0 {
			w.failf("a rebuild has ended and leaves keys behind%s, %d: %s", sh.named(), len(left), left[0])
		}
	}
}

// atOnce is the maximum number of keys, arguments and values that a call may process: Redis does nothing
// else meanwhile.
const atOnce = 12_000

// bounded checks that no call blocks Redis for long. Only a swap may process everything at once.
func (w *world) bounded(c *call, r redissim.Result) {
	answered, _ := r.Reply.([]any)
	n := len(c.command.Args)
	for _, v := range answered {
		if list, is := v.([]any); is {
			n += len(list)
		}
		n++
	}
	if n > atOnce && c.kind != "swap" {
		w.failf("a call has to do with too much at once, %s: %d", c.what, n)
	}
	if most := w.setup.MaxWindows; most > 0 && c.writes && c.command != nil {
		n, _ := c.shard.on.redis.Do("HLEN", c.shard.key(windowsKey)).(int64)
		if n > most {
			w.failf("more windows are listed than may be, after %s: %d", c.what, n)
		}
		if n >= most-most/10 {
			w.roomless = true
		}
	}
}

// isOneOfMany reports whether a command is sent once per key, by the hundred.
func isOneOfMany(name string) bool { return name == "UNLINK" || name == "ZCARD" }

// parks reports whether the driver controls the next of them: one in a hundred.
func (w *world) parks(p *process) bool {
	p.many++
	return p.many%100 == 1
}
