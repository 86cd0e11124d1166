package ranking

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
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
	// Lost says why what Redis has of the window isn't the window: one of the constants
	// below, or empty.
	Lost string
	// Incomplete are the partitions whose events before some time after the
	// window's start aren't in.
	Incomplete []string
	Standings  []Standing
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
	LostBoard  = "board_lost"     // it is listed, and its key is gone
	Unlisted   = "board_unlisted" // it isn't listed, and its key is there
	LostLedger = "ledger_lost"    // nothing says which events are in it
	LostSchema = "schema"         // nothing says what its scores were written with
	LostShard  = "shard_lost"     // one of several shards has nothing, neither schema nor ledger
)

// Query is what is read of a window in one call to a shard.
type Query struct {
	Board  string
	Window periods.Window
	// First is the rank, from 0, of the first row to read, and Rows how many; of none there is
	// no First.
	First, Rows int
	// Around has the rows read that are around the first of Members instead, as many above it
	// and below it as Rows says.
	Around  bool
	Members []string // to look up
	// Hidden has members looked up who aren't shown, too, as they themselves see it: their rank is
	// the one that they would have.
	Hidden bool
}

// Part is what one shard has of a window: a Board of its own members alone, whose rows are
// followed by the members that were looked up.
type Part struct {
	Board
	Rows int // how many of Standings are rows
}

// Top reads the first limit standings of the shard from an offset on. Both are 0 or more.
func (s *Store) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (Board, error) {
	if err := CheckPage(board, offset, limit); err != nil {
		return Board{}, err
	}
	p, err := s.Read(ctx, &Query{Board: board, Window: w, First: offset, Rows: limit})
	return p.Board, err
}

// CheckPage refuses a page that there can't be.
func CheckPage(board string, offset, limit int) error {
	if offset < 0 || limit < 0 || offset > math.MaxInt-limit {
		return Faultf("read %s: %d standings from offset %d on: both have to be 0 or more", board, limit, offset)
	}
	return nil
}

// Rank reads the standings of some members of the shard, in the order in which they are
// given; Rank is 0 for a member who isn't there.
func (s *Store) Rank(ctx context.Context, board string, w periods.Window, members ...string) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Members: members})
	return p.Board, err
}

// RankOfHidden is Rank that looks members up who aren't shown, too: the rank is the one that they
// would have among those who are.
func (s *Store) RankOfHidden(ctx context.Context, board string, w periods.Window, members ...string) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Members: members, Hidden: true})
	return p.Board, err
}

// Around reads the standing of a member of the shard and up to n above and below it, in order.
// Of a member who isn't there it is as Rank.
func (s *Store) Around(ctx context.Context, board string, w periods.Window, member string, n int) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Rows: n, Around: true, Members: []string{member}})
	if len(p.Standings) > 1 { // the member's own comes after the rows, and is one of them
		p.Standings = p.Standings[:len(p.Standings)-1]
	}
	return p.Board, err
}

// Read reads a window in one call. Where nothing stands under the prefix the error is a
// *SchemaError, and there is a Part that says what is beside the scores.
func (s *Store) Read(ctx context.Context, q *Query) (Part, error) {
	p, err := s.readAgainst(ctx, *s.readAs.Load(), q)
	if s.fits(err) {
		return s.readAgainst(ctx, *s.readAs.Load(), q)
	}
	return p, err
}

// fits reports whether a schema that was found differs in nothing but the Kafka cluster, which
// this reader doesn't know: it is what is read against from now on.
func (s *Store) fits(err error) bool {
	other, ok := errors.AsType[*SchemaError](err)
	if !ok || !s.anyCluster || !readable(other.Found, s.schema) {
		return false
	}
	s.readAs.Store(&other.Found)
	return true
}

// readAgainst reads where the schema is this one.
func (s *Store) readAgainst(ctx context.Context, schema string, q *Query) (Part, error) {
	call, err := s.readCall(schema, q)
	if err != nil {
		return Part{}, err
	}
	reply, err := s.Call(ctx, call.Script, call.Keys, call.Args...)
	return s.part(schema, q, reply, err)
}

// readCall is the call that a query is.
func (s *Store) readCall(schema string, q *Query) (ScriptCall, error) {
	if _, ok := s.periods[string(q.Window.Period)]; !ok {
		return ScriptCall{}, Faultf("read %s: no period %q is configured", q.Board, q.Window.Period)
	}
	if _, ok := s.Layout(q.Board, string(q.Window.Period)); !ok {
		return ScriptCall{}, Faultf("read %s: the board has no %s windows", q.Board, q.Window.Period)
	}
	lw := listed(q.Board, q.Window)
	args := []any{schema, lw.Listing()}
	switch {
	case q.Around:
		args = append(args, 0, "", q.Rows)
	case q.Rows > 0:
		args = append(args, q.First, strconv.Itoa(q.First+q.Rows-1), "")
	default:
		args = append(args, q.First, "", "")
	}
	hidden := "0"
	if q.Hidden {
		hidden = "1"
	}
	args = append(args, hidden)
	for _, m := range q.Members {
		args = append(args, m)
	}
	k := s.keys
	set, beside := k.Both(lw.Listing())
	return ScriptCall{s, lua.Read, []string{k.Schema(), k.Windows(), k.Origin(), k.Ledger(), k.Workers(), set, beside}, args}, nil
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
		return b, s.ofShard(&SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: found})
	}
	if len(reply) == 11 {
		if listing, _ := reply[1].(string); listing != "" {
			if err := s.CheckRule(&lw, listing); err != nil {
				return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
			}
		}
	}
	if err := b.parse(reply, schema, q.Members, layout); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", lw.Listing(), s.ofShard(err))
	}
	return b, nil
}

func (b *Part) parse(reply []any, schema string, members []string, l codec.TupleLayout) (err error) {
	if len(reply) != 11 {
		return Unexpected(lua.Read, reply)
	}
	w := b.Window
	listing, _ := reply[1].(string)
	b.Members, _ = reply[2].(int64)
	b.Listed = listing != ""
	b.Lost, _ = reply[10].(string)
	if start, rest, ok := strings.Cut(listing, " "); ok {
		end, _, _ := strings.Cut(rest, " ")
		if start != strconv.FormatInt(w.Start, 10) || end != strconv.FormatInt(w.End, 10) {
			return Faultf("the window is listed as [%s, %s) ms, and the calendar here says [%d, %d): "+
				"the time zone data differ, give this program those that wrote it", start, end, w.Start, w.End)
		}
	}
	if b.Beside, err = beside(schema, reply[7], reply[8], reply[3], reply[9]); err != nil {
		return err
	}
	if b.Incomplete, err = Incomplete(b.Beside.Origins, w.Start); err != nil {
		return err
	}
	rows, err := list(reply[5])
	if err != nil {
		return err
	}
	first, _ := reply[4].(int64)
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
	for i, m := range members {
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
	return nil
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

// Incomplete lists the partitions whose origin lies after a window's start, Unix ms.
func Incomplete(origins map[string]string, start int64) ([]string, error) {
	var all []string
	for partition, text := range origins {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", partition, err)
		}
		if start < o.Time {
			all = append(all, partition)
		}
	}
	sort.Strings(all)
	return all, nil
}
