package oracle

// Duplicates: an event of which a valid one with the same ids is at most so many offsets before
// it in its partition. What is one depends on the order in the log, and records come in any: so
// all of them are gone through anew where somebody asks.

import "slices"

// place is a partition of a topic.
type place struct {
	topic     string
	partition int
}

// ids are what duplicates have the same of.
type ids struct {
	place

	event, user string
}

// later keeps a record until it is asked about.
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

// catchUp goes through all records, if any came since.
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

// Before takes a committed record that counts as nothing, for it was there before anybody came:
// what repeats it is a duplicate.
func (o *Oracle) Before(r Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.before = true
	o.later(r)
}
