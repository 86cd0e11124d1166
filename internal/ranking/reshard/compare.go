package reshard

// The comparison reads the whole copy, and compares it with the rows that were read from the old shards:
// the number of members of each window, and a sum over its members and scores that does not depend on their
// order.

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ranking"
)

// sum is the number of rows of a window, and the sum of their hashes.
type sum struct {
	members int64
	hash    uint64 // sum over the rows, modulo 2^64
}

// add adds the rows of a page to the sums, and returns their number.
func (c *copier) add(to map[string]sum, page []span, rows [][]row) (n int64) {
	var b []byte
	sums := make([]sum, len(page))
	for i, p := range page {
		for _, r := range rows[i] {
			// The score comes first: its length is fixed, so different rows have different bytes.
			b = binary.LittleEndian.AppendUint64(b[:0], r.bits)
			b = append(append(append(b, p.set()...), 0), r.member...)
			sums[i].hash += xxhash.Sum64(b)
		}
		sums[i].members = int64(len(rows[i]))
		n += sums[i].members
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range page {
		if sums[i].members == 0 {
			continue
		}
		of := to[p.set()]
		to[p.set()] = sum{of.members + sums[i].members, of.hash + sums[i].hash}
	}
	return n
}

// compare reads the copy and compares it.
func (c *copier) compare(ctx context.Context) error {
	var all [][][]span
	for i, s := range c.to {
		pages, err := c.listed(ctx, i, s)
		if err != nil {
			return err
		}
		all = append(all, pages)
	}
	sums := map[string]sum{}
	c.copied.Store(0)
	err := c.eachPage(ctx, c.to, all, func(ctx context.Context, s *ranking.Store, page []span) error {
		rows, err := c.read(ctx, s, s.Keys().Copy(), page)
		if err != nil {
			return err
		}
		shard, _ := s.Shard()
		for i := range rows {
			for _, r := range rows[i] {
				if c.To.Of(r.hash) != shard {
					return ranking.Faultf("%q of %s was copied to shard %d, which it isn't of", r.member, page[i].set(), shard)
				}
			}
		}
		c.Watch.Copied(c.copied.Add(c.add(sums, page, rows)))
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.sums)) {
		if is, want := sums[name], c.sums[name]; is != want {
			return ranking.Faultf("the copy of %s has %d members with the checksum %016x, and the window %d with %016x", name, is.members, is.hash, want.members, want.hash)
		}
		c.result.Checksum += c.sums[name].hash
	}
	if len(sums) != len(c.sums) {
		return ranking.Faultf("the copy has %d windows with members in place of %d", len(sums), len(c.sums))
	}
	return nil
}

// listed returns the pages of a shard of the copy. It fails if the shard's listings differ from those
// copied.
func (c *copier) listed(ctx context.Context, shard int, s *ranking.Store) ([][]span, error) {
	var names map[string]string
	if err := tries(ctx, func() (err error) { names, err = s.Listings(ctx); return err }); err != nil {
		return nil, err
	}
	var listed []ranking.Listing
	for _, name := range slices.Sorted(maps.Keys(names)) {
		l, ok := c.listings[name]
		if want := c.text(name, c.sets[shard][name]); !ok || names[name] != want {
			return nil, ranking.Faultf("shard %d of the copy lists %s as %q in place of %q", shard, name, names[name], want)
		}
		listed = append(listed, l.With(c.sets[shard][name]))
	}
	pages, err := c.cut(ctx, shard, s, listed)
	if err != nil {
		return nil, fmt.Errorf("the copy: %w", err)
	}
	return pages, nil
}
