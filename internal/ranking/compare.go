package ranking

// Two sorted sets compared, a slice at a time.

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/standings/standings/internal/codec"
)

// Row is a standing as one of two sides has it.
type Row struct {
	There     bool
	Foreign   bool // its score is none that the layout writes: points and time are unknown
	Score     float64
	Points    int64
	ReachedAt time.Time // the first millisecond of its tick
}

// Difference is a standing that two sides have otherwise.
type Difference struct {
	Board, Period, Window string
	Member                string
	A, B                  Row
}

// comparison is which of two sorted sets are compared. They share a hash tag.
type comparison struct {
	store *Store // calls the scripts
	a, b  string // keys
	all   bool   // equal ones are wanted, too: scores of two layouts are never equal
	waits bool   // for what passes, as a failover
}

const (
	scanned  = 500  // of a sorted set a call: half a millisecond or so
	compared = 1000 // members asked for by their names a call
)

// scan gives every member of either set, or those that differ, with their scores, empty
// where a member isn't there. It waits for pause between two calls, so that Redis hardly
// notices; what is written meanwhile it may see or not, and it may give a member twice. A
// member that isn't written meanwhile it gives as it is: SCAN gives all that is there
// from its begin to its end.
func (c comparison) scan(ctx context.Context, pause time.Duration, each func(member, a, b string) error) error {
	if err := c.half(ctx, pause, each); err != nil {
		return err
	}
	other := c
	other.a, other.b = c.b, c.a
	return other.half(ctx, pause, func(member, b, a string) error {
		if a != "" {
			return nil // it was given by the first half
		}
		return each(member, a, b)
	})
}

// half gives the members of a. After a call that failed it begins anew: another server may
// answer now.
func (c comparison) half(ctx context.Context, pause time.Duration, each func(member, a, b string) error) error {
	return c.retry(ctx, func() error {
		return c.store.steady(ctx, func() error {
			for cursor := "0"; ; {
				next, err := c.ask(ctx, []any{cursor, scanned}, each)
				if err != nil {
					return err
				}
				if cursor = next; cursor == "0" {
					return nil
				}
				if err := wait(ctx, pause); err != nil {
					return err
				}
			}
		})
	})
}

func (c comparison) retry(ctx context.Context, do func() error) error {
	if c.waits {
		return Retry(ctx, do)
	}
	return do()
}

// members gives some members, by their names.
func (c comparison) members(ctx context.Context, names []string, each func(member, a, b string) error) error {
	for len(names) > 0 {
		n := min(len(names), compared)
		args := []any{""}
		for _, name := range names[:n] {
			args = append(args, name)
		}
		err := c.retry(ctx, func() error {
			_, err := c.ask(ctx, args, each)
			return err
		})
		if err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

func (c comparison) ask(ctx context.Context, what []any, each func(member, a, b string) error) (next string, err error) {
	mode := "differing"
	if c.all {
		mode = "all"
	}
	reply, err := c.store.run(ctx, compareScript, 2, append([]any{nil, nil, nil, c.a, c.b, mode}, what...))
	if err != nil {
		return "", fmt.Errorf("compare %s with %s: %w", c.a, c.b, err)
	}
	if len(reply) != 2 {
		return "", faultf("compare %s with %s: an unexpected reply of %d elements", c.a, c.b, len(reply))
	}
	next, _ = reply[0].(string)
	rows, err := list(reply[1])
	if err != nil || next == "" || len(rows)%3 != 0 {
		return "", faultf("compare %s with %s: an unexpected reply: %v", c.a, c.b, err)
	}
	for i := 0; i < len(rows); i += 3 {
		if err := each(rows[i], rows[i+1], rows[i+2]); err != nil {
			return "", err
		}
	}
	return next, nil
}

// row reads a score, empty for a member that isn't there.
func row(l codec.Layout, start, end int64, score string) (Row, error) {
	if score == "" {
		return Row{}, nil
	}
	f, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return Row{}, faultf("a score is %q", clip(score))
	}
	points, ticks, err := l.Decode(f)
	if err != nil {
		return Row{There: true, Foreign: true, Score: f}, nil //nolint:nilerr // that is what is told of it
	}
	return Row{There: true, Score: f, Points: points, ReachedAt: time.UnixMilli(l.Time(start, end, ticks)).UTC()}, nil
}
