package diff

// How far both sides are, and whether that is the same.
//
// A shard's ledger says which events of its members are counted. So a member has had the
// same events on both sides if the ledgers of its two shards are equal, and every member has
// if that holds for each two shards that have a range of hashes in common. With one number
// of shards that is shard by shard; with 2 and 3 all have to be at one place.
//
// It is asked of texts, and of all shards before and after the members are read. That errs
// on the safe side: a shard that got no change from the last batches may be left behind for
// a second, though nothing is missing in it, and then a window isn't called exact. Whoever
// asks a second after the traffic has ended finds all of them at the log's end.

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Position is how far both sides are in a partition. A and B are positions of the ledger,
// of several shards that of the one furthest behind; empty where none has the partition.
type Position struct {
	Partition string
	A, B      string
	// FurthestA and FurthestB are those of the shards that are furthest ahead.
	FurthestA, FurthestB string
	Same                 bool // on every two shards that have members in common
}

// Positions are how far both sides are, by partition.
func (d *Prefixes) Positions(ctx context.Context) ([]Position, error) {
	a, err := ledgers(ctx, d.A)
	if err != nil {
		return nil, err
	}
	b, err := ledgers(ctx, d.B)
	if err != nil {
		return nil, err
	}
	return positions(a, b), nil
}

func positions(a, b []map[string]string) []Position {
	fields := map[string]string{}
	for _, l := range slices.Concat(a, b) {
		maps.Copy(fields, l)
	}
	var all []Position
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		p := Position{Partition: field}
		p.A, p.FurthestA = span(a, field)
		p.B, p.FurthestB = span(b, field)
		p.Same = agree(a, b, func(x, y map[string]string) bool { return x[field] == y[field] })
		all = append(all, p)
	}
	return all
}

// span is the position of the shard furthest behind, and of that furthest ahead. One that
// hasn't got the partition while others have is furthest behind of all.
func span(shards []map[string]string, field string) (least, most string) {
	texts := make([]string, len(shards))
	for i, l := range shards {
		texts[i] = l[field]
	}
	return slices.MinFunc(texts, ledger.ComparePositions), slices.MaxFunc(texts, ledger.ComparePositions)
}

func ledgers(ctx context.Context, v *ranking.View) ([]map[string]string, error) {
	states, err := v.States(ctx)
	all := make([]map[string]string, len(states))
	for i := range states {
		all[i] = states[i].Ledger
	}
	return all, err
}

// agree reports whether every two shards that have hashes in common are alike.
func agree(a, b []map[string]string, alike func(x, y map[string]string) bool) bool {
	for i := range a {
		for j := range b {
			if meet(i, len(a), j, len(b)) && !alike(a[i], b[j]) {
				return false
			}
		}
	}
	return true
}

// meet reports whether shard i of n and shard j of m have hashes in common.
func meet(i, n, j, m int) bool { return i*m < (j+1)*n && j*n < (i+1)*m }

// same is the text of all ledgers, if the two sides stand at the same positions; else empty.
func (d *Prefixes) same(ctx context.Context) (string, error) {
	a, err := ledgers(ctx, d.A)
	if err != nil {
		return "", err
	}
	b, err := ledgers(ctx, d.B)
	if err != nil || !agree(a, b, maps.Equal[map[string]string]) {
		return "", err
	}
	var text strings.Builder
	for _, l := range a { // which are those of b, too
		for _, field := range slices.Sorted(maps.Keys(l)) {
			text.WriteString(strconv.Quote(field) + strconv.Quote(l[field]))
		}
		text.WriteByte('.')
	}
	return text.String(), nil
}
