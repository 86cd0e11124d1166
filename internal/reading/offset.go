package reading

// Read-your-writes: a reader names an event that it has published by partition and offset.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Offset identifies a record of a topic.
type Offset struct {
	partition ledger.Partition
	offset    int64
}

// ParseOffset parses topic/partition@offset.
func ParseOffset(text string) (Offset, error) {
	field, number, ok := strings.Cut(text, "@")
	p, invalid := ledger.ParsePartition(field)
	offset, err := strconv.ParseInt(number, 10, 64)
	if !ok || invalid != nil || err != nil || offset < 0 {
		return Offset{}, fmt.Errorf("%q must be topic/partition@offset, such as points/3@48211", text)
	}
	return Offset{p, offset}, nil
}

// Reached waits until all records count in every shard, at most wait, and reports whether they do.
func (r *Reader) Reached(ctx context.Context, all []Offset, wait time.Duration) (bool, error) {
	until := time.Now().Add(wait)
	for pause := leastWait; ; pause = min(2*pause, longestWait) {
		for len(all) > 0 {
			ok, err := r.counts(ctx, all[0])
			if err != nil {
				return false, err
			}
			if !ok {
				break
			}
			all = all[1:]
		}
		left := time.Until(until)
		if len(all) == 0 || left <= 0 {
			return len(all) == 0, nil
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

const (
	leastWait   = 5 * time.Millisecond
	longestWait = 100 * time.Millisecond
)

// Reached reports whether all records count in the view, in every shard. A record that counted a moment ago may
// not count here if another server answered.
func (v *View) Reached(all []Offset) bool {
	return !slices.ContainsFunc(all, func(o Offset) bool {
		at, err := ledger.Parse(v.Beside.Ledger[o.partition.String()])
		return err != nil || at.From <= o.offset
	})
}

// counts reports whether a record counts in every shard.
func (r *Reader) counts(ctx context.Context, o Offset) (bool, error) {
	positions, errs := ranking.PositionEach(ctx, r.Boards().Shards(), o.partition)
	for _, err := range errs {
		if err != nil {
			return false, err
		}
	}
	return !slices.ContainsFunc(positions, func(text string) bool {
		at, err := ledger.Parse(text)
		return err != nil || at.From <= o.offset
	}), nil
}
