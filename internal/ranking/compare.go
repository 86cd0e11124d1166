package ranking

// Compares two sorted sets, a page at a time.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/retry"
)

// Row is a member's standing on one side.
type Row struct {
	There     bool
	Foreign   bool // the layout doesn't write its score: points and time are unknown
	Score     float64
	Points    int64       // by the default rule
	Tuple     codec.Tuple // by another rule, which has Fields
	Fields    codec.Fields
	ReachedAt time.Time // the first millisecond of its tick
}

// Difference is a standing that differs between two sides.
type Difference struct {
	ledger.Window

	Member string
	Called string // the member's name, if NameDifferences found one
	A, B   Row
}

// Sets are the sorted sets of a window on two sides. They must share a hash tag.
type Sets struct {
	Store  *Store // calls the scripts
	Window ledger.Window
	Fields codec.Fields // empty for the default rule
	A, B   Set
	// Retry repeats calls that fail with a temporary error. If it is nil, each call is made once.
	Retry func(ctx context.Context, do func() error) error
}

// Set is a sorted set and the layout of its scores.
type Set struct {
	Key    string
	Layout codec.TupleLayout
	// Foreign reports that another rule wrote the scores, so they aren't decoded.
	Foreign bool
}

const (
	scanned  = 500  // members of a sorted set per scan call, about half a millisecond of Redis's time
	compared = 1000 // members per call that names them
)

// Scan passes every member whose scores differ in the two sets to each, with both scores; a score is empty
// if the set doesn't have the member. Scan waits for pause between two calls. It may miss writes that
// happen meanwhile, and may pass a member twice. It does pass every differing member that isn't written
// meanwhile: SCAN returns all elements that exist from its start to its end.
func (c Sets) Scan(ctx context.Context, pause time.Duration, each func(member, a, b string) error) error {
	if err := c.half(ctx, pause, each); err != nil {
		return err
	}
	other := c
	other.A, other.B = c.B, c.A
	return other.half(ctx, pause, func(member, b, a string) error {
		if a != "" {
			return nil // the first half has passed it
		}
		return each(member, a, b)
	})
}

// half passes the members of A. If a call fails or another server takes over, it starts again from the
// first page.
func (c Sets) half(ctx context.Context, pause time.Duration, each func(member, a, b string) error) error {
	return c.retry(ctx, func() error {
		return c.Store.scanSets(ctx, c.keys(), pause, differing(each))
	})
}

// Members passes those of the named members whose scores differ to each, as Scan does.
func (c Sets) Members(ctx context.Context, names []string, each func(member, a, b string) error) error {
	for some := range slices.Chunk(names, compared) {
		err := c.retry(ctx, func() error { return c.Store.memberScores(ctx, c.keys(), some, differing(each)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c Sets) keys() []string { return []string{c.A.Key, c.B.Key} }

func (c Sets) retry(ctx context.Context, do func() error) error {
	if c.Retry == nil {
		return do()
	}
	return c.Retry(ctx, do)
}

// differing passes the members of a page of two sets whose scores differ.
func differing(each func(member, a, b string) error) func(members []string, scores [][]string) error {
	return func(members []string, scores [][]string) error {
		for i, member := range members {
			if a, b := scores[0][i], scores[1][i]; !sameScore(a, b) {
				if err := each(member, a, b); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// sameScore compares two scores as texts or as numbers, since Redis can write a number in two ways. An
// empty score is missing.
func sameScore(a, b string) bool {
	if a == b || a == "" || b == "" {
		return a == b
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}

// Difference decodes a member's scores. A score is empty if the set doesn't have the member.
func (c Sets) Difference(member, a, b string) (d Difference, err error) {
	d = Difference{Window: c.Window, Member: member}
	if d.A, err = c.row(&c.A, a); err == nil {
		d.B, err = c.row(&c.B, b)
	}
	return d, err
}

func (c Sets) row(of *Set, score string) (Row, error) {
	if score == "" {
		return Row{}, nil
	}
	f, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return Row{}, Faultf("a score in %s is %q", c.Window.Listing(), Clip(score))
	}
	l := of.Layout
	tuple, ticks, err := codec.Tuple{}, int64(0), codec.ErrScore
	if !of.Foreign {
		tuple, ticks, err = l.Decode(f)
	}
	if err != nil {
		return Row{There: true, Foreign: true, Score: f}, nil //nolint:nilerr // which is what is reported
	}
	r := Row{There: true, Score: f, ReachedAt: time.UnixMilli(l.Time(c.Window.Start, c.Window.End, ticks)).UTC()}
	if c.Fields.Len() > 0 {
		r.Tuple, r.Fields = tuple, c.Fields
	} else {
		r.Points = tuple[0]
	}
	return r, nil
}

// Reads a window's members and their scores on one shard, page by page.

// Scored is a member and its score as Redis writes it. The score is empty if the window doesn't have the
// member.
type Scored struct{ Member, Score string }

// ScanScores passes every member of a window to each, a page at a time, and waits for pause between two
// calls. It may miss members that are written meanwhile, and may pass a member twice. If another server
// takes over meanwhile, it starts again.
func (s *Store) ScanScores(ctx context.Context, w *ledger.Window, pause time.Duration, each func([]Scored) error) error {
	return s.scanSets(ctx, []string{s.keys.Window(w)}, pause, func(members []string, scores [][]string) error {
		for some := range slices.Chunk(scored(members, scores[0]), compared) {
			if err := each(some); err != nil {
				return err
			}
		}
		return nil
	})
}

// Scores reads the scores of members in a window, in the order of members.
func (s *Store) Scores(ctx context.Context, w *ledger.Window, members []string) (all []Scored, err error) {
	err = s.memberScores(ctx, []string{s.keys.Window(w)}, members, func(some []string, scores [][]string) error {
		all = append(all, scored(some, scores[0])...)
		return nil
	})
	return all, err
}

func scored(members, scores []string) []Scored {
	all := make([]Scored, len(members))
	for i, member := range members {
		all[i] = Scored{member, scores[i]}
	}
	return all
}

// scanSets passes the members of the first set, a page at a time, with their scores in each set. If another
// server takes over, it starts again.
func (s *Store) scanSets(ctx context.Context, sets []string, pause time.Duration, each func(members []string, scores [][]string) error) error {
	return s.OnOneServer(ctx, func() error {
		for cursor := "0"; ; {
			next, members, scores, err := s.page(ctx, sets, "scan", cursor, scanned)
			if err == nil {
				err = each(members, scores)
			}
			if err != nil {
				return err
			}
			if cursor = next; cursor == "0" {
				return nil
			}
			if err := retry.Sleep(ctx, pause); err != nil {
				return err
			}
		}
	})
}

// memberScores passes the named members, a page at a time, with their scores in each set.
func (s *Store) memberScores(ctx context.Context, sets, names []string, each func(members []string, scores [][]string) error) error {
	for some := range slices.Chunk(names, compared) {
		args := []any{"members"}
		for _, name := range some {
			args = append(args, name)
		}
		_, members, scores, err := s.page(ctx, sets, args...)
		if err == nil {
			err = each(members, scores)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// page reads members of sorted sets and their scores in each set as of one moment; a score is empty if a
// set doesn't have the member. what is scan, a cursor and the approximate number of members of the first
// set to read; or members, followed by the members.
func (s *Store) page(ctx context.Context, sets []string, what ...any) (next string, members []string, scores [][]string, err error) {
	reply, err := s.Call(ctx, lua.Page, append(sets[:1:1], sets...), append([]any{""}, what...)...)
	if err != nil {
		return "", nil, nil, fmt.Errorf("read the scores of %s: %w", strings.Join(sets, " and "), err)
	}
	if len(reply) != 3+len(sets) || reply[0] != "scores" {
		return "", nil, nil, fmt.Errorf("read the scores of %s: %w", strings.Join(sets, " and "), Unexpected(lua.Page, reply))
	}
	next, _ = reply[1].(string)
	for i, some := range reply[2:] {
		texts, failed := list(some)
		if i == 0 {
			members = texts
		} else {
			scores = append(scores, texts)
		}
		if failed != nil || next == "" || len(texts) != len(members) {
			return "", nil, nil, fmt.Errorf("read the scores of %s: %w", strings.Join(sets, " and "), Unexpected(lua.Page, reply))
		}
	}
	return next, members, scores, nil
}

// ErrServerChanged reports that a Redis server failed over or restarted during a read.
var ErrServerChanged = errors.New("a server of Redis failed over or restarted")

// ScanMembers returns a page of the members that a window of the shard shows, or of its hidden members, in
// no order, and the cursor of the next page. The first cursor is 0, and 0 is returned after the last page.
// A member that is in the window from the first page to the last is on at least one page. Cursors are valid
// on one server process only (OnOneServer).
func (s *Store) ScanMembers(ctx context.Context, board string, w periods.Window, hidden bool, cursor uint64) (page []Standing, next uint64, err error) {
	lw := listed(board, w)
	layout, _ := s.Layout(board, lw.Period)
	key := s.keys.Window(&lw)
	if hidden {
		key = s.keys.Hidden(lw.Listing())
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	words, next, err := s.client.ZScan(limited, key, cursor, "", scanned).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("scan %s: %w", lw.Listing(), s.explain(err, ""))
	}
	ruled := s.Fields(board).Len() > 0
	page = make([]Standing, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == "" { // the empty id is no member: it keeps a window without members in existence (lua/ban.lua)
			continue
		}
		st, err := standing(layout, ruled, w, words[i], words[i+1])
		if err != nil {
			return nil, 0, fmt.Errorf("scan %s: %w", lw.Listing(), s.OfShard(err))
		}
		page = append(page, st)
	}
	return page, next, nil
}
