package deadletters

// Which originals have a fixed copy: a record of their topic says so in its last header.

import (
	"context"
	"fmt"

	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/units"
)

// copies reads the topics themselves, up to their ends as of now, for which originals of
// dead letters have a copy. It is called after the ends of the dead-letter topics are
// known: of what was published before that nothing is missed.
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

// copyOf is the original that a record is a copy of. Its own headers may have one of that
// name, as a copy of a copy has: the last is the publisher's.
func copyOf(rec *recordbatch.Record) (of Position, ok bool) {
	var name, last []byte
	rec.EachHeader(func(key, value []byte) { name, last = key, value })
	if string(name) != FixesHeader {
		return Position{}, false
	}
	of, err := parsePosition(string(last))
	return of, err == nil
}
