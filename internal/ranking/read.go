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
	// Incomplete are the partitions whose events before some time after the
	// window's start aren't in.
	Incomplete []string
	Standings  []Standing
}

// Top reads the first limit standings from an offset on. Both are 0 or more.
func (s *Store) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (Board, error) {
	if offset < 0 || limit < 0 || offset > math.MaxInt-limit {
		return Board{}, faultf("read %s: %d standings from offset %d on: both have to be 0 or more", board, limit, offset)
	}
	last := ""
	if limit > 0 {
		last = strconv.Itoa(offset + limit - 1)
	}
	b, err := s.read(ctx, board, w, []any{offset, last}, nil)
	for i := range b.Standings {
		b.Standings[i].Rank = int64(offset + i + 1)
	}
	return b, err
}

// Rank reads the standings of some members, in the order in which they are
// given; Rank is 0 for a member who isn't there.
func (s *Store) Rank(ctx context.Context, board string, w periods.Window, members ...string) (Board, error) {
	return s.read(ctx, board, w, []any{0, ""}, members)
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

func (s *Store) readAgainst(ctx context.Context, schema, board string, w periods.Window, rows []any, members []string) (Board, error) {
	rule, ok := s.periods[string(w.Period)]
	if !ok {
		return Board{}, faultf("read %s: no period %q is configured", board, w.Period)
	}
	lw := listed(board, w)
	args := []any{nil, nil, nil, s.keys.schema(), s.keys.windows(), s.keys.origin(), s.keys.window(&lw),
		schema, lw.Listing()}
	args = append(args, rows...)
	for _, m := range members {
		args = append(args, m)
	}
	reply, err := s.run(ctx, readScript, 4, args)
	if err != nil {
		return Board{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	if len(reply) == 2 && reply[0] == "schema" {
		found, _ := reply[1].(string)
		return Board{}, &SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: found}
	}
	b, err := parseBoard(reply, members, rule.Layout, w)
	if err != nil {
		return Board{}, fmt.Errorf("read %s: %w", lw.Listing(), err)
	}
	b.Name = board
	return b, nil
}

func parseBoard(reply []any, members []string, l codec.Layout, w periods.Window) (Board, error) {
	if len(reply) != 6 {
		return Board{}, faultf("an unexpected reply of %d elements", len(reply))
	}
	listing, _ := reply[1].(string)
	count, _ := reply[2].(int64)
	b := Board{Window: w, Tick: time.Duration(l.Tick) * time.Millisecond, Members: count, Listed: listing != ""}
	if start, rest, ok := strings.Cut(listing, " "); ok {
		end, _, _ := strings.Cut(rest, " ")
		if start != strconv.FormatInt(w.Start, 10) || end != strconv.FormatInt(w.End, 10) {
			return Board{}, faultf("the window is listed as [%s, %s) ms, and the calendar here says [%d, %d): "+
				"the time zone data differ, give this program those that wrote it", start, end, w.Start, w.End)
		}
	}
	origins, err := fields(reply[3])
	if err != nil {
		return Board{}, err
	}
	if b.Incomplete, err = incomplete(origins, w.Start); err != nil {
		return Board{}, err
	}
	rows, err := list(reply[4])
	if err != nil {
		return Board{}, err
	}
	for i := 0; i+1 < len(rows); i += 2 {
		st, err := standing(l, w, rows[i], rows[i+1])
		if err != nil {
			return Board{}, err
		}
		b.Standings = append(b.Standings, st)
	}
	looked, err := list(reply[5])
	if err != nil {
		return Board{}, err
	}
	for i, m := range members {
		if 2*i+1 >= len(looked) || looked[2*i] == "-1" {
			b.Standings = append(b.Standings, Standing{Member: m})
			continue
		}
		st, err := standing(l, w, m, looked[2*i+1])
		if err != nil {
			return Board{}, err
		}
		rank, err := strconv.ParseInt(looked[2*i], 10, 64)
		if err != nil {
			return Board{}, fmt.Errorf("rank of %q: %w", m, err)
		}
		st.Rank = rank + 1
		b.Standings = append(b.Standings, st)
	}
	return b, nil
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
