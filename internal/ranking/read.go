package ranking

import (
	"context"
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
	Rank   int64 // from 1; 0 where the member isn't there
	Member string
	Name   string // what the member is called; empty where that isn't known, or wasn't asked for
	Points int64  // by the default rule
	// Tuple has the fields of a board by another rule, in their order.
	Tuple codec.Tuple
	// ReachedAt is the first millisecond of the tick in which the points were
	// reached, but not before the window's start.
	ReachedAt time.Time
	Score     float64 // what Redis sorts by; 0 where the member isn't there
	// More and AtLeast are how many members have more points, or a better tuple, and how many
	// have at least as many, the member too: 0 unless they were asked for, or where the member
	// isn't there. Time doesn't count. So the rank that equal ones share is More + 1, where the
	// first of them counts (1224), or AtLeast, where the last does (1334).
	More, AtLeast int64
}

// Pivot is the standing's place in the order of its window.
func (s *Standing) Pivot() Pivot { return Pivot{s.Score, s.Member} }

// Board is a window as it was read.
type Board struct {
	Name    string
	Window  periods.Window
	Fields  codec.Fields  // of a board by another rule than the default one, else none
	Tick    time.Duration // how exact ReachedAt is
	Members int64
	Listed  bool // false where nothing was ever counted, or its retention is over
	// Revision is that of a final window, from 1; 0 where it takes events still, on a shard at least.
	Revision int64
	// Lost says why what Redis has of the window isn't the window: one of the constants
	// below, or empty.
	Lost string
	// Incomplete are the partitions whose events before some time after the
	// window's start aren't in: all of them if its period was added since.
	Incomplete []string
	Standings  []Standing
	// Place is how many members are above the place that rows were read around.
	Place int64
	// Counts is how many members have at least each of the scores that were given.
	Counts  []int64
	InRange int64 // how many members are in a range of scores, of a read of one
	// Beside is what stands beside the scores, as of the same moment. The hold isn't in it,
	// nor, where there is a schema, the number of windows. Of several shards it is what theirs
	// come to together (ledger.Together).
	Beside ledger.State
	// Of several shards only:
	LostOn string         // the shard that Lost is about
	Shards []ledger.State // what stands beside the scores of each, as of a moment of its own
}

// Why a window is lost. The names are those of the halts that a worker has for it.
const (
	LostBoard  = "board_lost"     // it is listed, and a key of it is gone
	Unlisted   = "board_unlisted" // it isn't listed, and its key is there
	LostLedger = "ledger_lost"    // nothing says which events are in it
	LostSchema = "schema"         // nothing says what its scores were written with
	LostShard  = "shard_lost"     // one of several shards has nothing, neither schema nor ledger
)

// Top reads the first limit standings of the shard from an offset on. Both are 0 or more.
func (s *Store) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (Board, error) {
	if err := CheckPage(board, offset, limit); err != nil {
		return Board{}, err
	}
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Rows: Rows{From: FromTop, Skip: offset, Below: limit}})
	return p.Board, err
}

// Rank reads the standings of some members of the shard, in the order in which they are
// given; Rank is 0 for a member who isn't there.
func (s *Store) Rank(ctx context.Context, board string, w periods.Window, members ...string) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Members: members})
	return p.Board, err
}

// Around reads the standing of a member of the shard and up to n above and below it, in order.
// Of a member who isn't there it is as Rank.
func (s *Store) Around(ctx context.Context, board string, w periods.Window, member string, n int) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Rows: Rows{From: FromMember, Above: n, Below: n + 1}, Members: []string{member}})
	if len(p.Standings) > 1 { // the member's own comes after the rows, and is one of them
		p.Standings = p.Standings[:len(p.Standings)-1]
	}
	return p.Board, err
}

// fits reports whether a schema that was found is one that this store reads beside: it is what is
// read against from now on. One that doesn't know the Kafka cluster reads any cluster's.
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

// part reads the reply to a query that was made against a schema. Where that differs the part
// has what stands beside the scores, too.
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
			return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), s.ofShard(err))
		}
		windows, _ := reply[5].(int64)
		switch b.Beside.Windows = int(windows); {
		case found == "" && len(b.Beside.Ledger) > 0:
			b.Lost = LostSchema
		case found == "" && windows > 0:
			b.Lost = LostLedger
		}
		return b, s.ofShard(&SchemaError{Prefix: s.prefix, Wanted: s.text(), Found: found})
	}
	if err := s.listing(&b, reply); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	if err := b.parse(reply, schema, q, layout); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), s.ofShard(err))
	}
	return b, nil
}

// replies is how many elements read.lua returns of a window.
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

// listing reads the window's listing, if it is listed, and takes its bounds from there: it may have been
// opened by a process with other time zone data.
func (s *Store) listing(b *Part, reply []any) error {
	if len(reply) != replies {
		return s.ofShard(Unexpected(lua.Read, reply))
	}
	text, _ := reply[1].(string)
	if text == "" {
		return nil
	}
	lw := listed(b.Name, b.Window)
	found, err := ParseListing(lw.Listing(), text)
	if err != nil {
		return s.ofShard(err)
	}
	if err := s.CheckRule(&found); err != nil {
		return err
	}
	differ := s.mayDiffer(b.Window.Period)
	b.Listed, b.Revision = true, found.Final
	if apart := max(found.Start-lw.Start, lw.Start-found.Start, found.End-lw.End, lw.End-found.End); apart > 0 && apart >= differ {
		return s.ofShard(Faultf("the window is listed as [%d, %d) ms, and the calendar here says [%d, %d): "+
			"no change of time zone rules explains that", found.Start, found.End, lw.Start, lw.End))
	}
	b.Window.Start, b.Window.End = found.Start, found.End
	return nil
}

// mayDiffer is more than a border of a period's windows differs by two versions of time zone data,
// in ms; 0 if no time zone decides where it is.
func (s *Store) mayDiffer(period periods.Period) int64 {
	if rule := s.periods[string(period)].Rule; rule.Zoned() {
		return periods.MaxShift
	}
	return 0
}

// add adds a standing by its score as Redis writes it.
func (b *Part) add(l codec.TupleLayout, member, text string, rank int64) error {
	st, err := standing(l, b.Fields.Len() > 0, b.Window, member, text)
	if err != nil {
		return err
	}
	st.Rank = rank
	b.Standings = append(b.Standings, st)
	return nil
}

// listed is a period's window of a board.
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

// integers reads so many of them; nil of none.
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
