package ranking

// Two sorted sets compared, a slice at a time.

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Row is a standing as one of two sides has it.
type Row struct {
	There     bool
	Foreign   bool // its score is none that the layout writes: points and time are unknown
	Score     float64
	Points    int64       // by the default rule
	Tuple     codec.Tuple // by another one, which has Fields
	Fields    codec.Fields
	ReachedAt time.Time // the first millisecond of its tick
}

// Difference is a standing that two sides have otherwise.
type Difference struct {
	ledger.Window

	Member string
	Called string // what the member is called, if that was asked (NameDifferences) and is known
	A, B   Row
}

// Sets are a window's sorted sets on two sides. They share a hash tag.
type Sets struct {
	Store  *Store // calls the scripts
	Window ledger.Window
	Fields codec.Fields // of a board by another rule than the default one
	A, B   Set
	// Retry is what calls go through, for what passes; nil calls once.
	Retry func(ctx context.Context, do func() error) error
}

// Set is a sorted set and how its scores are laid out.
type Set struct {
	Key    string
	Layout codec.TupleLayout
	// Foreign: its scores were written by another rule, and aren't read.
	Foreign bool
}

const (
	scanned  = 500  // of a sorted set a call: half a millisecond or so
	compared = 1000 // members asked for by their names a call
)

// Scan gives every member whose scores differ in the two sets, with both scores; the score of a
// member who isn't there is empty. It waits for pause between two calls. It may miss what is written
// meanwhile, and may give a member twice. A member that isn't written meanwhile is given as it is:
// SCAN returns everything that is there from its start to its end.
func (c Sets) Scan(ctx context.Context, pause time.Duration, each func(member, a, b string) error) error {
	if err := c.half(ctx, pause, each); err != nil {
		return err
	}
	other := c
	other.A, other.B = c.B, c.A
	return other.half(ctx, pause, func(member, b, a string) error {
		if a != "" {
			return nil // it was given by the first half
		}
		return each(member, a, b)
	})
}

// half gives the members of a. After a call that failed it begins anew: another server may
// answer now.
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

// Members gives some members by their names, as Scan does.
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

// ask gives those of a page's members whose scores differ.
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

// sameScore compares scores as Redis writes them, which it may do in two ways, empty for none.
func sameScore(a, b string) bool {
	if a == b || a == "" || b == "" {
		return a == b
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}

// Difference reads a member's scores, empty for one that isn't there.
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
