package deadletters

// Which dead letters are looked at, which of them are of the same original, and how
// many there are by partition and reason.

import (
	"cmp"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
)

// letterFilter says which letters are meant. A zero time is no bound.
type letterFilter struct {
	reasons      []string
	since, until time.Time // when the letter was written: from since on, before until
}

// takes reports whether a letter is meant. What is no letter has no reason.
func (f *letterFilter) takes(l *deadLetter) bool {
	switch {
	case len(f.reasons) > 0 && !slices.Contains(f.reasons, l.reason):
		return false
	case !f.since.IsZero() && l.written < f.since.UnixMilli():
		return false
	case !f.until.IsZero() && l.written >= f.until.UnixMilli():
		return false
	}
	return true
}

// seenLetters knows of which originals there was a letter.
type seenLetters map[string]*offsetSet // by topic and partition

// first reports whether a letter is the first of its original.
func (s seenLetters) first(l *deadLetter) bool {
	at := l.source
	at.offset = 0
	set := s[at.String()]
	if set == nil {
		set = &offsetSet{}
		s[at.String()] = set
	}
	return set.add(l.source.offset)
}

// letterCount is a line of the table. Events are originals; Letters are more where some
// were written again. Reason is empty for what is no letter.
type letterCount struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Reason    string `json:"reason"`
	Events    int64  `json:"events"`
	Letters   int64  `json:"letters"`
	First     string `json:"first_written"`
	Last      string `json:"last_written"`

	first, last int64
}

type countKey struct {
	topic     string
	partition int
	reason    string
}

// letterCounts counts in one pass. A letter of an original that had one before counts for
// its own reason as a letter, and for none as an event.
type letterCounts struct {
	seen seenLetters
	by   map[countKey]*letterCount
}

func newLetterCounts() *letterCounts {
	return &letterCounts{seenLetters{}, map[countKey]*letterCount{}}
}

func (c *letterCounts) add(l *deadLetter) {
	key := countKey{l.source.topic, l.source.partition, l.reason}
	if l.fault != "" {
		key = countKey{l.dlq, l.partition, ""}
	}
	n := c.by[key]
	if n == nil {
		n = &letterCount{Topic: key.topic, Partition: key.partition, Reason: key.reason, first: l.written, last: l.written}
		c.by[key] = n
	}
	n.Letters++
	n.first, n.last = min(n.first, l.written), max(n.last, l.written)
	if l.fault == "" && c.seen.first(l) {
		n.Events++
	}
}

// rows are the counts in order of topic, partition and reason.
func (c *letterCounts) rows() []letterCount {
	rows := []letterCount{}
	for _, n := range c.by {
		n.First, n.Last = units.TimeMS(n.first), units.TimeMS(n.last)
		rows = append(rows, *n)
	}
	slices.SortFunc(rows, func(a, b letterCount) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}

// reasonTotal is how many dead letters there are of a reason, in all partitions.
type reasonTotal struct {
	Reason  string `json:"reason"`
	Events  int64  `json:"events"`
	Letters int64  `json:"letters"`
}

// totals are the counts by reason, the most frequent first. What is no letter has none.
func (c *letterCounts) totals() []reasonTotal {
	by := map[string]*reasonTotal{}
	for key, n := range c.by {
		if key.reason == "" {
			continue
		}
		if by[key.reason] == nil {
			by[key.reason] = &reasonTotal{Reason: key.reason}
		}
		by[key.reason].Events += n.Events
		by[key.reason].Letters += n.Letters
	}
	totals := []reasonTotal{}
	for _, n := range by {
		totals = append(totals, *n)
	}
	slices.SortFunc(totals, func(a, b reasonTotal) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Reason, b.Reason))
	})
	return totals
}

// letterList holds the first letters that there are room for, each with how many there
// are of its original, and counts the others.
type letterList struct {
	limit  int
	seen   seenLetters
	held   map[original]*listedLetter
	listed []*listedLetter
	more   int64 // originals that there was no room for
}

type listedLetter struct {
	*deadLetter
	times int // letters of the same original, this one included
}

func newLetterList(limit int) *letterList {
	return &letterList{limit: limit, seen: seenLetters{}, held: map[original]*listedLetter{}}
}

func (c *letterList) add(l *deadLetter) {
	if l.fault == "" && !c.seen.first(l) {
		if held := c.held[l.source]; held != nil {
			held.times++
		}
		return
	}
	if len(c.listed) == c.limit {
		c.more++
		return
	}
	l.keep()
	listed := &listedLetter{l, 1}
	c.listed = append(c.listed, listed)
	if l.fault == "" {
		c.held[l.source] = listed
	}
}
