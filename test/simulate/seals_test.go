package simulate

// Plans in which windows close while records are written.

import (
	"fmt"
	"testing"
	"time"
)

// writtenAsItCloses returns a plan in which records are written while windows close. The worker that
// would count them gets no fetch responses for a while. n (steps) chooses when.
func writtenAsItCloses(n int) *plan {
	p := small()
	p.setup.Partitions, p.setup.Periods = 1, []string{"daily", "weekly"}
	p.setup.Seal, p.setup.SealEvery = true, 700*time.Millisecond
	at := beginning.Add(-time.Hour).UnixMilli()
	s := sending{}
	for i := range 8 {
		s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"late%d","points":%d,"occurred_at":%d}`, i, 1+i, at-int64(i))})
	}
	for i := range p.sendings {
		p.sendings[i].partition = 0
	}
	p.first = len(p.sendings)
	p.sendings = append(p.sendings, s)
	from := 30 + n
	p.events = []fault{{at: from, kind: silence, on: "fetch"}, {at: from + 4, kind: publish, n: p.first}, {at: from + 5, kind: closes, n: 1}, {at: from + 60, kind: flush}}
	return p
}

func TestWhatIsWrittenAsAWindowClosesIsInItOrCameAfterwards(t *testing.T) {
	late := 0
	n := fewer(40)
	for i := range n {
		late += holds(t, writtenAsItCloses(i)).counts[sealed]
	}
	if late < n {
		t.Errorf("%d windows were sealed", late)
	}
}
