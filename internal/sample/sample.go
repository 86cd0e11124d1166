// Package sample makes points-earned events that look like a game's: a few
// members earn most of the points, events come in out of order, some are
// corrections, and some are bad. Equal options make equal bytes, so that a run
// can be repeated and its outcome known in advance.
package sample

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Options say what the events are like. The zero value of a field is its
// default where one is given.
type Options struct {
	Seed    uint64
	Members int // how many there are, from 1; default 1000
	// Skew is Zipf's exponent: 1.1 is like real players, and more is more uneven.
	// Above 1, up to 10; 0 is everyone alike.
	Skew float64
	// Boards are the names to choose from; none leaves the field out, which
	// means the board global.
	Boards         []string
	BoardsPerEvent int // at most this many boards an event, 1 to 8; default 1
	// Spread is how far before Now occurred_at reaches, uniformly. From 0.
	Spread      time.Duration
	Bad         float64 // share of events that are bad, 0 to 1
	Corrections float64 // share of the good ones with negative points, 0 to 1
	// PointsMin and PointsMax are the range of an event's points, both
	// inclusive; a correction takes as much away. Default 1 to 100.
	PointsMin, PointsMax int64
	Now                  time.Time // the present; never asked of a clock
}

// ErrOptions says that options are out of range.
var ErrOptions = errors.New("sample options")

// Event is one event as it goes to Kafka. Key and Value lie in the buffer that
// Next returned.
type Event struct {
	Key    []byte // the member's id
	Value  []byte
	Reason string // why it is bad, in the consumer's words; empty for a good one
	Fault  string // what is wrong with a bad one, in a person's
}

// Generator makes events. It isn't safe for concurrent use.
type Generator struct {
	options Options
	random  *rand.Rand
	source  *rand.PCG
	ranks   *rand.Zipf // nil for everyone alike
	names   names
	boards  [][]byte // as JSON, quotes included
	picked  []int
	now     int64 // Unix ms
	spread  int64 // ms
	clock   clock
	shift   int // of the ranks, from 0 to below Members
}

// New makes a generator; its error is ErrOptions.
func New(o Options) (*Generator, error) {
	if o.Members == 0 {
		o.Members = 1000
	}
	if o.BoardsPerEvent == 0 {
		o.BoardsPerEvent = 1
	}
	if o.PointsMin == 0 && o.PointsMax == 0 {
		o.PointsMin, o.PointsMax = 1, 100
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	// Two words from one seed: PCG's second must not be the same for all seeds,
	// or neighbouring seeds begin alike.
	source := rand.NewPCG(o.Seed, o.Seed*0x9e3779b97f4a7c15+1)
	g := &Generator{
		options: o,
		random:  rand.New(source),
		source:  source,
		names:   newNames(o.Members, o.Seed),
		spread:  o.Spread.Milliseconds(),
	}
	if o.Skew > 0 {
		g.ranks = rand.NewZipf(g.random, o.Skew, 1, uint64(o.Members)-1)
	}
	for i, board := range o.Boards {
		quoted, _ := jsontext.AppendQuote(nil, board) // what isn't UTF-8 is U+FFFD
		g.boards = append(g.boards, quoted)
		g.picked = append(g.picked, i)
	}
	g.SetNow(o.Now)
	return g, nil
}

func (o *Options) check() error {
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	const most = int64(1) << 52
	for _, c := range []struct {
		ok   bool
		what string
	}{
		{o.Members >= 1 && o.Members <= 1<<40, "members must be 1 to 2^40"},
		{o.Skew == 0 || o.Skew > 1 && o.Skew <= 10, "skew must be 0, or above 1 and up to 10"},
		{o.BoardsPerEvent >= 1 && o.BoardsPerEvent <= 8, "boards an event must be 1 to 8"},
		{o.Spread >= 0, "spread must not be negative"},
		{share(o.Bad), "the share of bad events must be 0 to 1"},
		{share(o.Corrections), "the share of corrections must be 0 to 1"},
		{o.PointsMin >= 0 && o.PointsMin <= o.PointsMax && o.PointsMax <= most, "points must be from 0 to 2^52, the least first"},
		{o.Now.Add(-o.Spread).UnixMilli() >= 0, "now less spread must not be before 1970"},
		{o.Now.Year() <= 2105, "now must be before 2106"},
	} {
		if !c.ok {
			return fmt.Errorf("%w: %s", ErrOptions, c.what)
		}
	}
	return nil
}

// SetNow moves the present: events after it are made from there.
func (g *Generator) SetNow(now time.Time) { g.now = now.UnixMilli() }

// SetShift moves the ranks by n: the member of rank n+1 is now the most active, and so on
// round. Scores of members who take turns overtake each other, as
// those of people do; without it the order settles soon.
func (g *Generator) SetShift(n int) {
	g.shift = (n%g.options.Members + g.options.Members) % g.options.Members
}

// Next appends an event to buf, and returns it with the buffer.
func (g *Generator) Next(buf []byte) (Event, []byte) {
	start := len(buf)
	rank := (g.rank()+g.shift)%g.options.Members + 1
	buf = g.names.append(buf, rank)
	middle := len(buf)
	e := Event{}
	if g.options.Bad > 0 && g.random.Float64() < g.options.Bad {
		f := &faults[g.random.IntN(len(faults))]
		e.Reason, e.Fault = f.reason, f.name
		buf = f.append(g, buf, buf[start:middle])
	} else {
		buf = g.appendGood(buf, buf[start:middle])
	}
	e.Key, e.Value = buf[start:middle:middle], buf[middle:len(buf):len(buf)]
	return e, buf
}

// rank draws a member by how active they are, from 0.
func (g *Generator) rank() int {
	if g.ranks == nil {
		return g.random.IntN(g.options.Members)
	}
	return int(g.ranks.Uint64())
}

func (g *Generator) appendGood(buf, user []byte) []byte {
	buf = g.appendHead(buf)
	buf = g.appendBoard(buf)
	buf = appendUser(buf, user)
	buf = g.appendPoints(buf)
	buf = g.appendTime(buf)
	return append(buf, '}')
}
