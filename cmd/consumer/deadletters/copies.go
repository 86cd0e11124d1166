package deadletters

// This file finds the originals that have a fixed copy. A copy names its original in its last header.

import (
	"context"
	"fmt"

	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/units"
)

// copies reads the source topics up to their current ends and returns the originals that have a copy. It
// must be called after the ends of the dead-letter topics are known: then it finds every copy that was
// published before.
func (r *reader) copies(ctx context.Context, quiet bool) (originals, error) {
	var all []*scan.Stretch
	for _, topic := range r.having {
		partitions, err := r.stretches(ctx, topic, "to see which dead letters have a copy")
		if err != nil {
			return nil, r.explain(ctx, err, topic)
		}
		cut := int64(0)
		for _, s := range partitions {
			if s.From > 0 {
				cut++
			}
		}
		if cut > 0 {
			fmt.Fprintf(r.reading.Stderr, "note: Kafka has deleted the beginning of %s of %s: dead letters whose copies were there are shown as open\n",
				units.Plural(cut, "partition"), topic)
		}
		all = append(all, partitions...)
	}
	found := originals{}
	return found, r.reading.Each(ctx, "looking for copies", all, quiet, func(_ *scan.Stretch, rec *recordbatch.Record) error {
		if of, ok := copyOf(rec); ok {
			found.add(of)
		}
		return nil
	})
}

// copyOf returns the original of a copy. Only the last header counts, which the publisher adds: a copy of a
// copy also carries the header of the first copy.
func copyOf(rec *recordbatch.Record) (of Position, ok bool) {
	var name, last []byte
	rec.EachHeader(func(key, value []byte) { name, last = key, value })
	if string(name) != FixesHeader {
		return Position{}, false
	}
	of, err := parsePosition(string(last))
	return of, err == nil
}
