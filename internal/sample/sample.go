// Package sample generates points-earned events that resemble those of a game: a few members earn most of the points,
// events are out of order, some are corrections, and some are bad. Equal options generate equal bytes, so that a run
// can be repeated and its result known in advance.
package sample

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Options configures the events. A zero field has its default, if the field's comment names one.
type Options struct {
	Seed    uint64
	Members int // number of members, from 1; default 1000
	// Skew is Zipf's exponent: 1.1 resembles real players, and a greater one is more uneven. It is above 1 and up
	// to 10, or 0 if all members are equally active.
	Skew float64
	// Boards are the names to choose from. If it is empty, events have no board, which means the board
	// global.
	Boards         []string
	BoardsPerEvent int // maximum number of boards per event, 1 to 8; default 1
	// Spread is how far occurred_at is before Now at most, uniformly distributed. It is not negative.
	Spread      time.Duration
	Bad         float64 // share of bad events, 0 to 1
	Corrections float64 // share of the good events with negative points, 0 to 1
	// PointsMin and PointsMax are the inclusive range of an event's points; a correction has the same range,
	// negated. Default 1 to 100.
	PointsMin, PointsMax int64
	Now                  time.Time // the present; the package never reads a clock
}

// ErrOptions means that options are out of range.
var ErrOptions = errors.New("sample options")

// Event is one event as it is sent to Kafka. Key and Value are slices of the buffer that Next returned.
type Event struct {
	Key    []byte // the member's id
	Value  []byte
	Reason string // why it is bad, in the consumer's words; "" for a good one
	Fault  string // a readable description of the fault of a bad one
}

// Generator generates events. It is not safe for concurrent use.
type Generator struct {
	options Options
	random  *rand.Rand
	source  *rand.PCG
	ranks   *rand.Zipf // nil if all members are equally active
	names   names
	boards  [][]byte // as JSON, including the quotes
	picked  []int
	now     int64 // Unix ms
	spread  int64 // ms
	clock   clock
	shift   int // added to the ranks, from 0 to below Members
}

// New returns a generator. Its errors wrap ErrOptions.
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
	// PCG's second word is derived from the seed, since with a constant one, similar seeds would start with
	// similar numbers.
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
		quoted, _ := jsontext.AppendQuote(nil, board) // invalid UTF-8 becomes U+FFFD
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

// SetNow sets the present for the following events.
func (g *Generator) SetNow(now time.Time) { g.now = now.UnixMilli() }

// SetShift rotates the ranks by n: the member of rank n+1 becomes the most active, and so on. If the members alternate,
// their scores overtake each other, as those of real players do; without a shift the order soon becomes stable.
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

// rank draws a member by activity, from 0.
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
