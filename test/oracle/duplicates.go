package oracle

// Duplicates: an event is a duplicate if a valid event with the same ids is at most n offsets before it in its
// partition. This depends on the order in the log, but records arrive in any order, so the oracle processes all
// records again when it is queried.

import "slices"

// place is a partition of a topic.
type place struct {
	topic     string
	partition int
}

// ids are the values that duplicates have in common.
type ids struct {
	place

	event, user string
}

// later stores a record until the oracle is queried.
func (o *Oracle) later(r Record) (reason string) {
	o.records = append(o.records, r)
	o.behind = true
	if r.Value == nil {
		return ""
	}
	if _, _, reason = o.config.judge(r); reason == "" && r.Overflow {
		reason = Overflow
	}
	return reason
}

// catchUp processes all records again if new ones arrived since.
func (o *Oracle) catchUp() {
	if !o.behind {
		return
	}
	o.reset()
	slices.SortStableFunc(o.records, func(a, b Record) int { return int(a.Offset - b.Offset) })
	latest := map[ids]int64{}
	for _, r := range o.records {
		if r.Value != nil {
			if e, id, reason := o.config.judge(r); reason == "" && id != "" {
				these := ids{place{r.Topic, r.Partition}, id, e.user}
				before, seen := latest[these]
				latest[these] = r.Offset
				if seen && r.Offset-before <= o.config.Duplicates {
					if !r.before {
						o.counts.Duplicates++
					}
					continue
				}
			}
		}
		if !r.before {
			o.now(r)
		}
	}
}

// Before adds a committed record that lies before the consumer's start. It does not count, but its repeats are
// duplicates.
func (o *Oracle) Before(r Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.before = true
	o.later(r)
}
