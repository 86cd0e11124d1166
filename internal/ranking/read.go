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
)

// Standing is a member's row in a window.
type Standing struct {
	Rank   int64 // from 1; 0 where the member isn't there
	Member string
	Points int64
	// ReachedAt is the first millisecond of the tick in which the points were
	// reached, but not before the window's start.
	ReachedAt time.Time
}

// Board is a window as it was read.
type Board struct {
	Name    string
	Window  periods.Window
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
	// nor, where there is a schema, the number of windows.
	Beside ledger.State
}

// Why a window is lost. The names are those of the halts that a worker has for it.
const (
	LostBoard  = "board_lost"     // it is listed, and its key is gone
	Unlisted   = "board_unlisted" // it isn't listed, and its key is there
	LostLedger = "ledger_lost"    // nothing says which events are in it
	LostSchema = "schema"         // nothing says what its scores were written with
)

// Top reads the first limit standings from an offset on. Both are 0 or more.
func (s *Store) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (Board, error) {
	if offset < 0 || limit < 0 || offset > math.MaxInt-limit {
		return Board{}, faultf("read %s: %d standings from offset %d on: both have to be 0 or more", board, limit, offset)
	}
	last := ""
	if limit > 0 {
		last = strconv.Itoa(offset + limit - 1)
	}
	return s.read(ctx, board, w, []any{offset, last, ""}, nil)
}

// Rank reads the standings of some members, in the order in which they are
// given; Rank is 0 for a member who isn't there.
func (s *Store) Rank(ctx context.Context, board string, w periods.Window, members ...string) (Board, error) {
	return s.read(ctx, board, w, []any{0, "", ""}, members)
}

// Around reads a member's standing and up to n above and below it, in order. Of a member
// who isn't there it is as Rank.
func (s *Store) Around(ctx context.Context, board string, w periods.Window, member string, n int) (Board, error) {
	b, err := s.read(ctx, board, w, []any{0, "", n}, []string{member})
	if len(b.Standings) > 1 { // the member's own comes after the rows, and is one of them
		b.Standings = b.Standings[:len(b.Standings)-1]
	}
	return b, err
}

func (s *Store) read(ctx context.Context, board string, w periods.Window, rows []any, members []string) (Board, error) {
	b, err := s.readAgainst(ctx, *s.readAs.Load(), board, w, rows, members)
	other, ok := errors.AsType[*SchemaError](err)
	if ok && s.anyCluster && sameButCluster(other.Found, s.schema) {
		s.readAs.Store(&other.Found)
		return s.readAgainst(ctx, other.Found, board, w, rows, members)
	}
	return b, err
}

// readAgainst reads where the schema is this one. Where it isn't, the board has what stands
// beside it, too.
func (s *Store) readAgainst(ctx context.Context, schema, board string, w periods.Window, rows []any, members []string) (Board, error) {
	rule, ok := s.periods[string(w.Period)]
	if !ok {
		return Board{}, faultf("read %s: no period %q is configured", board, w.Period)
	}
	lw := listed(board, w)
	args := []any{nil, nil, nil, s.keys.schema(), s.keys.windows(), s.keys.origin(), s.keys.ledger(), s.keys.workers(), s.keys.window(&lw),
		schema, lw.Listing()}
	args = append(args, rows...)
	for _, m := range members {
		args = append(args, m)
	}
	reply, err := s.run(ctx, readScript, 6, args)
	if err != nil {
		return Board{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	b := Board{Name: board, Window: w, Tick: time.Duration(rule.Layout.Tick) * time.Millisecond}
	if len(reply) == 6 && reply[0] == "schema" {
		found, _ := reply[1].(string)
		if b.Beside, err = beside(found, reply[2], reply[4], nil, reply[3]); err != nil {
			return Board{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
		}
		windows, _ := reply[5].(int64)
		switch b.Beside.Windows = int(windows); {
		case found == "" && len(b.Beside.Ledger) > 0:
			b.Lost = LostSchema
		case found == "" && windows > 0:
			b.Lost = LostLedger
		}
		return b, &SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: found}
	}
	if err := b.parse(reply, schema, members, rule.Layout); err != nil {
		return Board{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	return b, nil
}

func (b *Board) parse(reply []any, schema string, members []string, l codec.Layout) (err error) {
	if len(reply) != 11 {
		return faultf("an unexpected reply of %d elements", len(reply))
	}
	w := b.Window
	listing, _ := reply[1].(string)
	b.Members, _ = reply[2].(int64)
	b.Listed = listing != ""
	b.Lost, _ = reply[10].(string)
	if start, rest, ok := strings.Cut(listing, " "); ok {
		end, _, _ := strings.Cut(rest, " ")
		if start != strconv.FormatInt(w.Start, 10) || end != strconv.FormatInt(w.End, 10) {
			return faultf("the window is listed as [%s, %s) ms, and the calendar here says [%d, %d): "+
				"the time zone data differ, give this program those that wrote it", start, end, w.Start, w.End)
		}
	}
	if b.Beside, err = beside(schema, reply[7], reply[8], reply[3], reply[9]); err != nil {
		return err
	}
	if b.Incomplete, err = incomplete(b.Beside.Origins, w.Start); err != nil {
		return err
	}
	rows, err := list(reply[5])
	if err != nil {
		return err
	}
	first, _ := reply[4].(int64)
	for i := 0; i+1 < len(rows); i += 2 {
		st, err := standing(l, w, rows[i], rows[i+1])
		if err != nil {
			return err
		}
		st.Rank = first + int64(i/2) + 1
		b.Standings = append(b.Standings, st)
	}
	looked, err := list(reply[6])
	if err != nil {
		return err
	}
	for i, m := range members {
		if 2*i+1 >= len(looked) || looked[2*i] == "-1" {
			b.Standings = append(b.Standings, Standing{Member: m})
			continue
		}
		st, err := standing(l, w, m, looked[2*i+1])
		if err != nil {
			return err
		}
		rank, err := strconv.ParseInt(looked[2*i], 10, 64)
		if err != nil {
			return fmt.Errorf("rank of %q: %w", m, err)
		}
		st.Rank = rank + 1
		b.Standings = append(b.Standings, st)
	}
	return nil
}

// listed is a period's window of a board.
func listed(board string, w periods.Window) ledger.Window {
	return ledger.Window{Board: board, Period: string(w.Period), Name: w.Name, Start: w.Start, End: w.End}
}

func list(reply any) ([]string, error) {
	all, ok := reply.([]any)
	if !ok {
		return nil, faultf("an unexpected reply: %T for a list", reply)
	}
	return texts(all)
}

func standing(l codec.Layout, w periods.Window, member, score string) (Standing, error) {
	f, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return Standing{}, fmt.Errorf("score of %q: %w", member, err)
	}
	points, ticks, err := l.Decode(f)
	if err != nil {
		return Standing{}, fmt.Errorf("score of %q: %w", member, err)
	}
	return Standing{Member: member, Points: points, ReachedAt: time.UnixMilli(l.Time(w.Start, w.End, ticks)).UTC()}, nil
}

// incomplete lists the partitions whose origin lies after a window's start.
func incomplete(origins map[string]string, start int64) ([]string, error) {
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
