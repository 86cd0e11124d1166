package ranking

// Compares two sorted sets, a page at a time.

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
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
		return c.Store.onOneServer(ctx, func() error {
			for cursor := "0"; ; {
				next, err := c.ask(ctx, each, "scan", cursor, scanned)
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
	})
}

func (c Sets) retry(ctx context.Context, do func() error) error {
	if c.Retry == nil {
		return do()
	}
	return c.Retry(ctx, do)
}

// Members passes those of the named members whose scores differ to each, as Scan does.
func (c Sets) Members(ctx context.Context, names []string, each func(member, a, b string) error) error {
	for len(names) > 0 {
		n := min(len(names), compared)
		args := []any{"members"}
		for _, name := range names[:n] {
			args = append(args, name)
		}
		err := c.retry(ctx, func() error {
			_, err := c.ask(ctx, each, args...)
			return err
		})
		if err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// ask passes the members of one page whose scores differ, and returns the next cursor.
func (c Sets) ask(ctx context.Context, each func(member, a, b string) error, what ...any) (next string, err error) {
	next, members, scores, err := c.Store.page(ctx, []string{c.A.Key, c.B.Key}, what...)
	if err != nil {
		return "", fmt.Errorf("compare %s with %s: %w", c.A.Key, c.B.Key, err)
	}
	for i, member := range members {
		if a, b := scores[0][i], scores[1][i]; !sameScore(a, b) {
			if err := each(member, a, b); err != nil {
				return "", err
			}
		}
	}
	return next, nil
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
		return Row{}, Faultf("a score in %s is %q", c.Window.Listing(), clip(score))
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
