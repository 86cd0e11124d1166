package simulate

// This file defines plans. A plan is drawn from a seed before its world begins, and determines the world.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	lateness      = 24 * time.Hour
	maxFuture     = 5 * time.Minute
	maxEventBytes = 4 << 10
)

const day = 24 * time.Hour

var retention = map[string]time.Duration{
	"daily": 14 * day, "weekly": 60 * day, "monthly": 400 * day, "yearly": 800 * day,
	"us-week": 20 * day, "south": 12 * day, "season": 30 * day, "to-come": 30 * day, "over": 40 * day, "sprint": 9 * day, "dash": 60 * day,
	"all-time": day,
}

// plan is a world before it runs.
type plan struct {
	seed     int64
	setup    setup
	sendings []sending
	first    int // number of sendings that are in the log at the beginning; events send the others
	events   []fault
	closed   [][]fault // the events that become due, by step, once the first window has closed, the second, …
	counted  bool      // the steps of events count from the step at which everything in the initial logs is counted
}

// setup is the configuration of a world.
type setup struct {
	Partitions      int
	Second          int   // partitions of a second topic; 0: no second topic
	Shards, Masters int   // 0: one
	Later           later // than the first topic
	Zone, WeekStart string
	Periods         []string
	Layout          string
	MaxPoints       int64
	FetchBytes      int
	Start           starts.From
	StartTime       int64 // Unix ms
	Continue        bool  // on_gap: continue
	Processes       []size
	Disorder        bool            // record times go back, and some records have none
	MaxWindows      int64           // maximum of listed windows; 0: no limit
	Windows         int64           // of all records, in worlds with many boards; 0: not counted
	Ahead           time.Duration   // of the machines' clocks before Redis's, when the world begins
	Readers         int             // number of readers of boards
	NoLetters       bool            // the dead-letter topic does not exist
	Beheaded        int             // approximate number of offsets deleted from the logs before the world begins
	Names           bool            // events contain members' names
	Duplicates      int64           // offsets searched for duplicates; 0: duplicates count
	Ruled           []ruledBoard    // boards with rules of their own
	Books           []book          // the configurations used in turn; empty: the configuration does not change
	Less            int64           // the smaller fold_memory of some later processes, in bytes; 0: equal
	Seal            bool            // windows are sealed
	SealEvery       time.Duration   // how often sealing is tried
	Apart           []time.Duration // offsets of processes' clocks from the machines' clocks, by process id
	Bans            bool            // members are banned
	BannedBefore    []int           // draws for the members banned before the world begins
	BansLag         time.Duration   // the time within which processes hear of a ban
	Zones           bool            // some processes have other time zone rules
	Election        bool            // an unclean election loses records
	Added           *addition       // a period that is added while processes run
}

// size is a process's fold_memory and the duration of its pieces.
type size struct {
	foldMemory int64
	pieceTime  time.Duration
}

// Synctest bubbles begin at midnight UTC 2000-01-01, at the border of every period.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// families are the kinds of worlds with something extra. The world of seed from+n is that of seed n with
// the family's change. The highest from comes first.
var families = []struct {
	from   int64
	change func(p *plan, n int64)
}{
	{addedFrom, func(p *plan, _ int64) { p.added() }},
	{electionsFrom, func(p *plan, _ int64) { p.elections() }},
	{zonesFrom, func(p *plan, _ int64) { p.zones() }},
	{sealsFrom, func(p *plan, _ int64) { p.seals() }},
	{booksFrom, func(p *plan, _ int64) { p.ruled(true) }},
	{ruledFrom, func(p *plan, _ int64) { p.ruled(false) }},
	{repeatsFrom, func(p *plan, n int64) {
		p.repeats()
		if n%3 == 2 {
			p.name()
		}
	}},
}

// seedOf returns the seed of a run's world by its number. Seven of ten worlds belong to one family each.
func seedOf(number int64) int64 {
	if of := int(number % 10); of > 0 && of <= len(families) {
		return families[of%len(families)].from + number
	}
	return number
}

// draw returns the plan of a seed.
func draw(seed int64) *plan {
	for _, f := range families {
		if seed > f.from {
			n := seed - f.from
			p := draw(n)
			if p.seed = seed; n%crowdEvery != 0 {
				f.change(p, n)
			}
			return p
		}
	}
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(seed), 0x5eed))}
	p := &plan{seed: seed}
	if seed%crowdEvery == 0 {
		d.crowd(p)
		return p
	}
	s := &p.setup
	s.Partitions = d.pick(1, 1, 2, 2, 3)
	s.Zone = pick(d, "UTC", "UTC", "Europe/Berlin", "America/Sao_Paulo")
	s.WeekStart = pick(d, "monday", "monday", "sunday")
	s.Periods = pick(d, []string{"weekly", "monthly"}, []string{"weekly", "monthly", "yearly"}, []string{"daily"}, []string{"daily", "yearly"})
	s.Layout = pick(d, "readable", "wide")
	s.MaxPoints = pick(d, int64(1000), 1000, 99_999_999)
	s.FetchBytes = d.pick(1<<10, 4<<10, 64<<10)
	s.Start = pick(d, starts.FromWindow, starts.FromWindow, starts.FromEarliest, starts.FromLatest, starts.FromTime)
	s.StartTime = beginning.Add(-time.Duration(d.IntN(20)) * time.Hour).UnixMilli()
	s.Continue = d.IntN(3) == 0
	d.small = d.IntN(3) == 0
	d.long = d.IntN(3) == 0 && !d.small // a small memory cannot hold a long batch
	if d.long && d.IntN(2) == 0 {       // a sweep covers whole responses with long ids, which some processes cannot hold
		s.Less, s.FetchBytes, s.Partitions = 256<<10, 64<<10, d.pick(1, 1, 2)
	}
	d.narrow = s.Less > 0
	for range d.pick(1, 1, 2) {
		s.Processes = append(s.Processes, d.size())
	}
	d.records(p)
	d.faults(p)
	d.more(p)
	d.shards(p)
	d.own(p)
	p.bans()
	return p
}

type drawer struct {
	*rand.Rand
	small bool // memory is too small for long ids
	long  bool // batches have several pieces, and faults happen in the middle of them
	// narrow: a successor may be unable to hold such a batch. Nothing in the log is larger than the smaller
	// memory can read.
	narrow bool
}

func (d *drawer) pick(all ...int) int { return all[d.IntN(len(all))] }

func pick[T any](d *drawer, all ...T) T { return all[d.IntN(len(all))] }

func (d *drawer) size() size {
	s := size{foldMemory: 32 << 20, pieceTime: time.Duration(d.pick(320, 320, 640, 5000)) * time.Microsecond}
	if d.small {
		s.foldMemory = int64(d.pick(256, 320, 512)) << 10
	}
	if d.long {
		s.pieceTime = 320 * time.Microsecond
	}
	return s
}

// records draws the records that are sent.
func (d *drawer) records(p *plan) {
	at := beginning.Add(-30 * time.Hour).UnixMilli()
	members, most := d.pick(6, 20, 60), 20
	if d.long {
		members, most = 60, 60
	}
	if d.narrow {
		members, most = 200, 36
	}
	n := d.pick(2, 5, 9)
	p.first = n - d.IntN(n/2+1)
	over := p.setup.MaxPoints == 1000 && d.IntN(2) == 0
	if p.setup.Start == starts.FromTime || p.setup.Start == starts.FromLatest {
		over = false // a rebuild keeps earlier windows and may refuse other events in the rest: no choice fits both
	}
	transactions := d.IntN(2) == 0
	for i := range n {
		s := sending{partition: d.IntN(p.setup.Partitions)}
		if d.IntN(4) == 0 && !d.small && !d.narrow {
			s.codec = int8(d.pick(1, 2, 3)) // not zstd: its decoders have channels, and are pooled beyond a bubble
		}
		s.appendTime = d.IntN(6) == 0
		if transactions && d.IntN(2) == 0 {
			s.outcome = pick(d, committed, committed, aborted, open)
		}
		if d.IntN(4) == 0 {
			s.gap = int64(d.IntN(5))
		}
		if i >= p.first {
			at = max(at, beginning.UnixMilli())
		}
		batch := d.pick(3, 20, most)
		if d.narrow {
			batch = most
		}
		if d.small { // a batch must fit into a sixteenth of the memory
			batch = min(batch, 10)
		}
		for range 1 + d.IntN(batch) {
			if d.IntN(3) == 0 {
				at += int64(d.IntN(3_600_000))
			}
			if i < p.first { // initial records are not from after the beginning
				at = min(at, beginning.UnixMilli())
			}
			s.records = append(s.records, d.record(at, members, over))
		}
		if d.IntN(3) == 0 { // compaction left holes
			for i := range s.records {
				s.records[i].hole = d.IntN(3) == 0
			}
		}
		p.sendings = append(p.sendings, s)
	}
}

// record draws a record.
func (d *drawer) record(at int64, members int, over bool) record {
	r := record{time: at - int64(d.IntN(1000))}
	switch d.IntN(16) {
	case 0: // a tombstone
		r.key = []byte("k")
		return r
	case 1:
		r.value = []byte(pick(d, "", "{", "[]", `{"user_id":"u"}`, `{"user_id":"u","points":1.5}`, `{"user_id":"u","points":1,"board":"-"}`,
			`{"user_id":"u","points":1,"occurred_at":-5}`, "\xff", strings.Repeat("x", maxEventBytes+1)))
		if len(r.value) > maxEventBytes && (d.small || d.narrow) {
			r.value = []byte("poison")
		}
		if d.IntN(3) == 0 {
			r.headers = []kmsg.Header{{Key: "h", Value: []byte("v")}}
			r.key = []byte("k")
		}
		return r
	case 2: // too far in the future
		r.value = fmt.Appendf(nil, `{"user_id":"u1","points":3,"occurred_at":%d}`, r.time+maxFuture.Milliseconds()+1)
		return r
	}
	occurred := r.time - int64(d.IntN(3))*int64(d.IntN(3_600_000))
	switch d.IntN(12) {
	case 0:
		occurred = r.time + int64(d.IntN(300_000))
	case 1: // late for some windows
		occurred = r.time - (25 * day).Milliseconds() - int64(d.IntN(1000))
	case 2: // late for more windows
		occurred = r.time - (500 * day).Milliseconds()
	}
	user, points := fmt.Sprint("u", d.IntN(members)), d.IntN(60)-10
	if d.small && d.IntN(2) == 0 || d.narrow {
		user += strings.Repeat("x", 200)
	}
	if over && d.IntN(d.rarely()) == 0 { // two of them exceed the range
		user, points = fmt.Sprint("over", d.IntN(2)), 600
	}
	board := pick(d, "", "", `,"board":"eu"`, `,"board":["eu","us"]`, `,"board":["eu","global","us","eu"]`)
	r.value = fmt.Appendf(nil, `{"user_id":%q,"points":%d,"occurred_at":%d%s}`, user, points, occurred, board)
	return r
}

// rarely keeps the number of overflowing events small: with too many, the checks cannot find out which were
// refused.
func (d *drawer) rarely() int {
	if d.long {
		return 80
	}
	return 12
}

// clone returns a copy from which parts can be removed.
func (p *plan) clone() *plan {
	c := *p
	c.setup.Processes = slices.Clone(p.setup.Processes)
	c.events = slices.Clone(p.events)
	c.sendings = slices.Clone(p.sendings)
	for i := range c.sendings {
		c.sendings[i].records = slices.Clone(p.sendings[i].records)
	}
	return &c
}
