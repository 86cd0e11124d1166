// Package sample generates points-earned events that resemble those of a game: a few members earn most of the points,
// events are out of order, some are corrections, and some are bad. Equal options generate equal bytes, so that a run
// can be repeated and its result known in advance.
package sample

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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
}

// Generator generates events. It is not safe for concurrent use.
type Generator struct {
	options Options
	random  *rand.Rand
	source  *rand.PCG
	ranks   *rand.Zipf // nil if all members are equally active
	boards  []string   // as JSON, including the quotes
	now     int64      // Unix ms
	spread  int64      // ms
	shift   int        // added to the ranks, from 0 to below Members
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
		spread:  o.Spread.Milliseconds(),
	}
	if o.Skew > 0 {
		g.ranks = rand.NewZipf(g.random, o.Skew, 1, uint64(o.Members)-1)
	}
	for _, board := range o.Boards {
		quoted, _ := jsontext.AppendQuote(nil, board) // invalid UTF-8 becomes U+FFFD
		g.boards = append(g.boards, string(quoted))
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
	buf = appendName(buf, g.options.Members, (g.rank()+g.shift)%g.options.Members)
	middle := len(buf)
	e := Event{}
	if g.options.Bad > 0 && g.random.Float64() < g.options.Bad {
		f := &faults[g.random.IntN(len(faults))]
		e.Reason = f.reason
		buf = g.appendFault(buf, buf[start:middle], f.value)
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
	buf = appendUser(g.appendHead(buf), user)
	points := g.options.PointsMin + g.random.Int64N(g.options.PointsMax-g.options.PointsMin+1)
	if g.options.Corrections > 0 && g.random.Float64() < g.options.Corrections {
		points = -points
	}
	buf = strconv.AppendInt(append(buf, `,"points":`...), points, 10)
	at := g.now
	if g.spread > 0 {
		at -= g.random.Int64N(g.spread)
	}
	buf = append(buf, `,"occurred_at":"`...)
	return append(time.UnixMilli(at).UTC().AppendFormat(buf, "2006-01-02T15:04:05.000Z"), `"}`...)
}

// appendHead opens the object with a random id of 128 bits, and a board: a name, or a list of distinct names if
// BoardsPerEvent permits several.
func (g *Generator) appendHead(buf []byte) []byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], g.source.Uint64())
	binary.BigEndian.PutUint64(id[8:], g.source.Uint64())
	buf = append(hex.AppendEncode(append(buf, `{"event_id":"`...), id[:]), '"')
	if len(g.boards) == 0 {
		return buf
	}
	buf = append(buf, `,"board":`...)
	n := 1 + g.random.IntN(min(g.options.BoardsPerEvent, len(g.boards)))
	if n == 1 {
		return append(buf, g.boards[g.random.IntN(len(g.boards))]...)
	}
	separator := byte('[')
	for _, i := range g.random.Perm(len(g.boards))[:n] {
		buf = append(append(buf, separator), g.boards[i]...)
		separator = ','
	}
	return append(buf, ']')
}

// appendUser writes a generated name, which needs no escaping.
func appendUser(buf, user []byte) []byte {
	return append(append(append(buf, `,"user_id":"`...), user...), '"')
}

// spokenMembers is the maximum number of members for which names are pronounceable. More have numbers.
const spokenMembers = 5000

// appendName writes the unique id of the member of a rank. Pronounceable names of neighbouring ranks differ in their
// first letters.
func appendName(buf []byte, members, rank int) []byte {
	const consonants, vowels = "bdklmnrstv", "aeiou"
	if members > spokenMembers {
		return fmt.Appendf(buf, "player-%07d", rank+1)
	}
	start := len(buf)
	id := rank * 77_251 % 125_000 // of three syllables out of 50; the factor is coprime, so each id has one rank
	for range 3 {
		buf = append(buf, consonants[id%10], vowels[id/10%5])
		id /= 50
	}
	buf[start] -= 'a' - 'A'
	return buf
}
