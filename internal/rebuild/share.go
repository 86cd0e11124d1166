package rebuild

// What a shard has to do with a snapshot. Of one of as many shards it is that of its own number. Of one
// of others it is those that have some of its members: each of their pages goes, row by row, to the shards
// that the members are of by now, and each row is as of the ledger of its page. Only who has no row is as
// of the first ledger of the shard that they were of (fold.Counted). So it is exact, whatever the numbers.
//
// A window that is final on one of them and isn't on another was being sealed as the snapshot was taken:
// one shard can't be both, and such a snapshot is refused. A seal lists the window on every shard.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// share is what a shard has to do with a snapshot.
type share struct {
	from    []int                    // the snapshot's shards, ascending
	first   map[string]int64         // the offset before which all of their first ledgers have every event
	reach   map[string]int64         // the highest offset that any of their pages has to do with
	origins map[string]ledger.Origin // where they begin to have events
	dropped map[string]string
	final   map[string]string
	// half are windows that are final on some of them, or of several revisions.
	half []string
}

// fields are the partitions that it has, in order.
func (s *share) fields() []string { return slices.Sorted(maps.Keys(s.reach)) }

// shares are those of all shards, of which there are so many.
func (s *Snapshot) shares(of ledger.Shards) ([]share, error) {
	var all []share
	for shard := range int(of) {
		one, err := s.share(ledger.Shards(len(s.Surveys)).Overlapping(shard, of))
		if err != nil {
			return nil, err
		}
		all = append(all, *one)
	}
	return all, nil
}

func (s *Snapshot) share(from []int) (*share, error) {
	all := &share{
		from: from, first: map[string]int64{}, reach: map[string]int64{}, origins: map[string]ledger.Origin{},
		dropped: map[string]string{}, final: map[string]string{},
	}
	origins := map[string]string{}
	for _, shard := range from {
		of := s.Surveys[shard]
		for field, at := range of.Reach {
			all.reach[field] = max(all.reach[field], at)
		}
		for field, text := range of.Origins {
			origins[field] = ranking.LaterOrigin(origins[field], text)
		}
		for name, until := range of.Beside.Dropped {
			all.dropped[name] = ranking.LaterTime(all.dropped[name], until)
		}
		for name, record := range of.Beside.Final {
			all.final[name] = ranking.LaterSeal(all.final[name], record)
		}
	}
	for field := range all.reach {
		var err error
		if all.origins[field], err = originOf(origins[field]); err != nil {
			return nil, fmt.Errorf("the snapshot's origin of %s: %w", field, err)
		}
		if all.first[field], err = s.lowest(from, field); err != nil {
			return nil, fmt.Errorf("the snapshot's first position of %s: %w", field, err)
		}
	}
	all.half = s.half(all)
	return all, nil
}

// begun is when the first of some shards of the snapshot was begun, by Redis's clock.
func (s *Snapshot) begun(from []int) time.Time {
	first := s.Surveys[from[0]].Begin.Now
	for _, shard := range from[1:] {
		first = min(first, s.Surveys[shard].Begin.Now)
	}
	return time.UnixMilli(first)
}

func originOf(text string) (ledger.Origin, error) {
	if text == "" {
		return ledger.Origin{}, nil
	}
	return ledger.ParseOrigin(text)
}

// first is the offset before which the first ledger of one of the snapshot's shards has every event: of a
// partition that was added while it was taken, where that began.
func first(s *snapshot.Survey, field string) (int64, error) {
	if text := s.Begin.Ledger[field]; text != "" {
		at, err := ledger.Parse(text)
		return at.From, err
	}
	o, err := originOf(s.Origins[field])
	return o.Offset, err
}

// lowest is the first offset of any of the snapshot's shards. One that was read before the partition was
// added has none of its events: that is as far as where it began.
func (s *Snapshot) lowest(from []int, field string) (int64, error) {
	lowest, lacks := int64(-1), false
	for _, shard := range from {
		of := s.Surveys[shard]
		if _, ok := of.Reach[field]; !ok {
			lacks = true
			continue
		}
		at, err := first(of, field)
		if err != nil {
			return 0, err
		}
		if lowest < 0 || at < lowest {
			lowest = at
		}
	}
	if !lacks {
		return lowest, nil
	}
	for _, shard := range from {
		if text := s.Surveys[shard].Origins[field]; text != "" {
			o, err := ledger.ParseOrigin(text)
			if err != nil {
				return 0, err
			}
			lowest = min(lowest, o.Offset)
		}
	}
	return lowest, nil
}

// half are the windows of a share that are final on one of the snapshot's shards, and aren't on another.
func (s *Snapshot) half(of *share) (names []string) {
	revisions := map[string][]int64{}
	for _, shard := range of.from {
		for name, listing := range s.Surveys[shard].Listings {
			if _, dropped := of.dropped[name]; !dropped {
				revisions[name] = append(revisions[name], ranking.ListedRevision(listing))
			}
		}
	}
	for name, are := range revisions {
		low, high := slices.Min(are), slices.Max(are)
		if len(are) < len(of.from) {
			low = 0
		}
		if low != high {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// halves refuses what was being sealed.
func (c *Check) halves(shares []share) {
	var names []string
	for i := range shares {
		names = append(names, shares[i].half...)
	}
	if slices.Sort(names); len(names) > 0 {
		c.Refused = append(c.Refused, fmt.Sprintf("%s were being sealed as the snapshot was taken, and are final on some of its shards alone: restore another one, "+
			"or with as many shards as it has (redis.shards), and change that afterwards (consumer reshard)", strings.Join(slices.Compact(names), ", ")))
	}
}
