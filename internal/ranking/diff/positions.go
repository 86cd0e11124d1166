package diff

// The positions of both sides. If all are equal, both sides have counted the same events, because a
// position denotes the events that its shard has counted. A shard without changes in the last batches may
// be up to a second behind, although it lacks nothing; a second after the last event all shards are at the
// log's end.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/inventory"
)

// Position is the position of both sides in a partition.
type Position struct {
	Partition string
	A, B      Span
}

// Span is the lowest and the highest position of the shards. A position is empty if a shard doesn't have
// the partition.
type Span struct{ Least, Most string }

// Same reports whether all shards of both sides are at one position.
func (p *Position) Same() bool { return p.A == p.B && p.A.Least == p.A.Most }

// Positions returns the positions of both sides, by partition.
func (d *Prefixes) Positions(ctx context.Context) ([]Position, error) {
	a, err := ledgers(ctx, d.A)
	if err != nil {
		return nil, err
	}
	b, err := ledgers(ctx, d.B)
	if err != nil {
		return nil, err
	}
	partitions := map[string]string{}
	for _, l := range slices.Concat(a, b) {
		maps.Copy(partitions, l)
	}
	var all []Position
	for _, partition := range slices.Sorted(maps.Keys(partitions)) {
		all = append(all, Position{partition, span(a, partition), span(b, partition)})
	}
	return all, nil
}

func span(shards []map[string]string, partition string) Span {
	positions := make([]string, len(shards))
	for i, l := range shards {
		positions[i] = l[partition]
	}
	return Span{slices.MinFunc(positions, ledger.ComparePositions), slices.MaxFunc(positions, ledger.ComparePositions)}
}

func ledgers(ctx context.Context, v *inventory.View) ([]map[string]string, error) {
	states, err := v.States(ctx)
	all := make([]map[string]string, len(states))
	for i := range states {
		all[i] = states[i].Ledger
	}
	return all, err
}

// samePositions returns the text of all positions if they are equal on both sides, else "".
func (d *Prefixes) samePositions(ctx context.Context) (string, error) {
	all, err := d.Positions(ctx)
	var text strings.Builder
	for i := range all {
		if !all[i].Same() {
			return "", err
		}
		fmt.Fprintf(&text, "%q %q ", all[i].Partition, all[i].A.Least)
	}
	return text.String(), err
}
