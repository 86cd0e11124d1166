package ranking

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
)

// Standing is a member's row in a window.
type Standing struct {
	Rank   int64 // from 1; 0 if the window doesn't have the member
	Member string
	Name   string // the member's name; empty if it is unknown or wasn't requested
	Points int64  // by the default rule
	// Tuple has the fields of a board with another rule, in order.
	Tuple codec.Tuple
	// ReachedAt is the first millisecond of the tick in which the member reached the points, but not before
	// the window's start.
	ReachedAt time.Time
	Score     float64 // what Redis sorts by; 0 if the window doesn't have the member
	// More and AtLeast are the numbers of members with more points (or a better tuple), and with at least
	// as many, the member included. Both are 0 if they weren't requested, or if the window doesn't have the
	// member. Time doesn't count. So the rank that equal members share is More + 1 if the first of them
	// counts (1224), or AtLeast if the last one does (1334).
	More, AtLeast int64
}

// Pivot returns the standing's place in the order of its window.
func (s *Standing) Pivot() Pivot { return Pivot{s.Score, s.Member} }

// Board is a window as it was read.
type Board struct {
	Name    string
	Window  periods.Window
	Fields  codec.Fields  // of a board with another rule than the default one, else empty
	Tick    time.Duration // resolution of ReachedAt
	Members int64
	Listed  bool // false if no event was counted in the window, or its retention is over
	// Revision is the revision of a final window, from 1; 0 if the window still accepts events, at least on
	// one shard.
	Revision int64
	// Lost is the reason why the data in Redis isn't the whole window: one of the constants below, or
	// empty.
	Lost string
	// Incomplete lists the partitions from which the window lacks early events: those whose events are
	// counted only from some time after the window's start, and all of them if the period was added after
	// it.
	Incomplete []string
	Standings  []Standing
	// Place is the number of members above the place that rows were read around.
	Place int64
	// Counts has, for each requested score, the number of members with at least that score.
	Counts  []int64
	InRange int64 // number of members in a range of scores, if the read had one
	// Beside is the shard's state as of the same moment. It lacks the hold and, if there is a schema, the
	// number of windows. If the board was read from several shards, it is their combined state
	// (ledger.Together).
	Beside ledger.State
	// Only for several shards:
	LostOn string         // the shard that has the problem in Lost
	Shards []ledger.State // the state of each shard, each as of its own moment
}

// Reasons why a window is lost. They have the names of the halts that they cause in a worker.
const (
	LostBoard  = "board_lost"     // the window is listed, and one of its keys is gone
	Unlisted   = "board_unlisted" // the window isn't listed, and one of its keys exists
	LostLedger = "ledger_lost"    // the ledger is gone, so it is unknown which events are counted
	LostSchema = "schema"         // the schema is gone, so it is unknown how the scores were written
	LostShard  = "shard_lost"     // one of several shards has neither schema nor ledger
)

// fits reports whether the store can read with the schema in a *SchemaError, and makes it read with that
// schema from then on. A store that doesn't know the Kafka cluster accepts any cluster.
func (s *Store) fits(err error) bool {
	other, ok := errors.AsType[*SchemaError](err)
	if !ok {
		return false
	}
	if !s.anyCluster {
		return other.Found != "" && s.adopt(other.Found)
	}
	if !readable(other.Found, s.own.Text()) {
		return false
	}
	s.readAs.Store(&other.Found)
	return true
}

// part parses the reply to a query that expected schema. If Redis has another schema, the part contains the
// shard's state, and the error is a *SchemaError.
func (s *Store) part(schema string, q *Query, reply []any, err error) (Part, error) {
	lw := listed(q.Board, q.Window)
	if err != nil {
		return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	layout, _ := s.Layout(q.Board, string(q.Window.Period))
	b := Part{Board: Board{
		Name: q.Board, Window: q.Window, Tick: time.Duration(layout.Tick) * time.Millisecond,
		Fields: s.Fields(q.Board),
	}}
	if len(reply) == 6 && reply[0] == "schema" {
		found, _ := reply[1].(string)
		if b.Beside, err = beside(found, reply[2], reply[4], nil, reply[3]); err != nil {
			return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), s.OfShard(err))
		}
		windows, _ := reply[5].(int64)
		switch b.Beside.Windows = int(windows); {
		case found == "" && len(b.Beside.Ledger) > 0:
			b.Lost = LostSchema
		case found == "" && windows > 0:
			b.Lost = LostLedger
		}
		return b, s.OfShard(&SchemaError{Prefix: s.prefix, Wanted: s.text(), Found: found})
	}
	if err := s.listing(&b, reply); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	if err := b.parse(reply, schema, q, layout); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), s.OfShard(err))
	}
	return b, nil
}

// replies is the number of elements that read.lua returns for a window.
const replies = 14

func (b *Part) parse(reply []any, schema string, q *Query, l codec.TupleLayout) (err error) {
	b.Members, _ = reply[2].(int64)
	b.Lost, _ = reply[10].(string)
	if b.Beside, err = beside(schema, reply[7], reply[8], reply[3], reply[9]); err != nil {
		return err
	}
	if b.Incomplete, err = Incomplete(&b.Beside, b.Name, string(b.Window.Period), b.Window.Start); err != nil {
		return err
	}
	place, _ := reply[11].(int64)
	b.Place = max(0, place)
	if b.Counts, err = integers(reply[12], len(q.Counts)); err != nil {
		return err
	}
	rows, err := list(reply[5])
	if err != nil {
		return err
	}
	first, _ := reply[4].(int64)
	b.Standings = slices.Grow(b.Standings, len(rows)/2+len(q.Members))
	for i := 0; i+1 < len(rows); i += 2 {
		if err := b.add(l, rows[i], rows[i+1], first+int64(i/2)+1); err != nil {
			return err
		}
	}
	b.Rows = len(b.Standings)
	looked, err := list(reply[6])
	if err != nil {
		return err
	}
	for i, m := range q.Members {
		if 2*i+1 >= len(looked) || looked[2*i] == "-1" {
			b.Standings = append(b.Standings, Standing{Member: m})
			continue
		}
		rank, err := strconv.ParseInt(looked[2*i], 10, 64)
		if err != nil {
			return fmt.Errorf("rank of %q: %w", m, err)
		}
		if err := b.add(l, m, looked[2*i+1], rank+1); err != nil {
			return err
		}
	}
	if q.Ties {
		return b.tie(reply[13])
	}
	return nil
}

// listing reads the window's listing, if it has one, and uses its bounds: a process with other time zone
// data may have opened the window.
func (s *Store) listing(b *Part, reply []any) error {
	if len(reply) != replies {
		return s.OfShard(Unexpected(lua.Read, reply))
	}
	text, _ := reply[1].(string)
	if text == "" {
		return nil
	}
	lw := listed(b.Name, b.Window)
	found, err := ParseListing(lw.Listing(), text)
	if err != nil {
		return s.OfShard(err)
	}
	if err := s.CheckRule(&found); err != nil {
		return err
	}
	differ := s.mayDiffer(b.Window.Period)
	b.Listed, b.Revision = true, found.Final
	if apart := max(found.Start-lw.Start, lw.Start-found.Start, found.End-lw.End, lw.End-found.End); apart > 0 && apart >= differ {
		return s.OfShard(Faultf("the window is listed as [%d, %d) ms, and the calendar here says [%d, %d): "+
			"no change of time zone rules explains that", found.Start, found.End, lw.Start, lw.End))
	}
	b.Window.Start, b.Window.End = found.Start, found.End
	return nil
}

// mayDiffer returns an upper bound (exclusive) of how far a border of a period's windows differs between
// two versions of time zone data, in ms; 0 if the period doesn't depend on the time zone.
func (s *Store) mayDiffer(period periods.Period) int64 {
	if rule := s.periods[string(period)].Rule; rule.Zoned() {
		return periods.MaxShift
	}
	return 0
}

// add appends a standing, given its score as Redis writes it.
func (b *Part) add(l codec.TupleLayout, member, text string, rank int64) error {
	st, err := standing(l, b.Fields.Len() > 0, b.Window, member, text)
	if err != nil {
		return err
	}
	st.Rank = rank
	b.Standings = append(b.Standings, st)
	return nil
}

// listed returns a board's window.
func listed(board string, w periods.Window) ledger.Window {
	return ledger.Window{Board: board, Period: string(w.Period), Name: w.Name, Start: w.Start, End: w.End}
}

func list(reply any) ([]string, error) {
	all, ok := reply.([]any)
	if !ok {
		return nil, Faultf("an unexpected reply: %T for a list", reply)
	}
	return Texts(all)
}

// integers parses a list of want integers; nil if want is 0.
func integers(reply any, want int) ([]int64, error) {
	list, _ := reply.([]any)
	if len(list) != want {
		return nil, Faultf("an unexpected reply: %d counts for %d", len(list), want)
	}
	var all []int64
	for _, v := range list {
		n, ok := v.(int64)
		if !ok {
			return nil, Faultf("an unexpected reply: %T for a count", v)
		}
		all = append(all, n)
	}
	return all, nil
}

func standing(l codec.TupleLayout, ruled bool, w periods.Window, member, text string) (Standing, error) {
	score, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Standing{}, fmt.Errorf("score of %q: %w", member, err)
	}
	tuple, ticks, err := l.Decode(score)
	if err != nil {
		return Standing{}, fmt.Errorf("score of %q: %w", member, err)
	}
	st := Standing{Member: member, ReachedAt: time.UnixMilli(l.Time(w.Start, w.End, ticks)).UTC(), Score: score}
	if ruled {
		st.Tuple = tuple
	} else {
		st.Points = tuple[0]
	}
	return st, nil
}
