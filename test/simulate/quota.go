package simulate

// Brokers that answer fetches without records, though there are some: a quota throttles
// who reads too much, and says for how long; a broker answers empty at once; one fetch in
// four fails, and in the middle of a sweep every other. Each lasts for a while, or to the end of the world: what there is
// to read has to come in all the same.

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	quota   = "a quota throttles fetches"
	empties = "a broker answers empty at once"
	flaky   = "fetches fail time and again"

	throttledEmpty = "a fetch is throttled, and answered with no topics"
	throttledFull  = "a fetch is throttled, and answered with records"
	sweepHindered  = "a sweep's reading is hindered in its middle"
)

// hindrance is what keeps records from those who fetch them.
type hindrance struct {
	kind  string
	until time.Time // zero: there is none
	stays bool      // to the end of the world
	pause time.Duration
	mutes bool // who was throttled isn't heard until then
	full  bool // the records come beside the time, as from old brokers
	cuts  bool // connections, where fetches fail

	fetches map[connection]int
	free    map[connection]time.Time // when it is served again
	told    map[connection]time.Time // and until when it isn't heard
}

// connection is what a process fetches one partition by.
type connection struct {
	of        *process
	partition int
}

func (c *call) connection() connection { return connection{c.from, c.partition} }

// hinder has a hindrance begin.
func (w *world) hinder(f fault) bool {
	h := hindrance{
		kind: f.kind, until: time.Now().Add(time.Duration(1+f.n%20) * time.Second), stays: f.n>>5&3 == 0 && f.kind != empties,
		pause: time.Duration(50+f.n>>7%400) * time.Millisecond, mutes: f.n>>8&1 == 1, full: f.n>>9&7 == 0, cuts: f.n>>12&3 > 0,
		fetches: map[connection]int{}, free: map[connection]time.Time{}, told: map[connection]time.Time{},
	}
	w.mu.Lock()
	w.kafka.hindrance = h
	w.mu.Unlock()
	lasts := "for a while"
	if h.stays {
		lasts = "to the end"
	}
	w.tellf("from here on %s, %s", f.kind, lasts)
	return false // it counts by what it does
}

// muted reports whether a broker doesn't hear a call yet.
func (h *hindrance) muted(c *call) bool { return h.mutes && time.Now().Before(h.told[c.connection()]) }

// hindered is what a fetch gets instead of records; nil is that nothing hinders it. The
// world's lock is held.
func (w *world) hindered(c *call, q *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	h := &w.kafka.hindrance
	if h.until.IsZero() || !h.stays && (w.ending || time.Now().After(h.until)) {
		return nil, nil
	}
	log := w.kafka.partitions[c.partition]
	if _, stable := log.shown(); c.offset >= stable || c.offset < log.start {
		return nil, nil // there is nothing to keep from it
	}
	sweeps := false
	for _, one := range w.ledgers() {
		from, to, _ := parse(one[c.partition])
		sweeps = sweeps || c.offset > from && c.offset < to
	}
	var a *kmsg.FetchResponse
	var err error
	switch h.kind {
	case quota:
		if a = h.throttle(c.connection()); a == nil {
			if h.full {
				w.count(throttledFull)
				a = w.kafka.fetch(q)
				a.ThrottleMillis = int32(h.pause.Milliseconds())
			}
			return a, nil
		}
		w.count(throttledEmpty)
	case empties:
		w.count(h.kind)
		a = w.kafka.fetch(q)
		a.Topics[0].Partitions[0].RecordBatches = nil
	case flaky:
		h.fetches[c.connection()]++
		n, often := h.fetches[c.connection()], 4
		if sweeps {
			often = 2
		}
		if n%often > 0 {
			return nil, nil
		}
		w.count(h.kind)
		if h.cuts {
			err = errReset
			break
		}
		codes := kafkaCodes["fetch"]
		a, _ = c.fails(codes[n/often%len(codes)], false).(*kmsg.FetchResponse)
	}
	if sweeps {
		w.count(sweepHindered)
	}
	return a, err
}

// throttle is the answer to who has used the quota up; nil is that it hasn't.
func (h *hindrance) throttle(c connection) *kmsg.FetchResponse {
	left := time.Until(h.free[c])
	if left <= 0 {
		h.free[c] = time.Now().Add(h.pause)
		return nil
	}
	h.told[c] = h.free[c]
	a := kmsg.NewPtrFetchResponse()
	a.ThrottleMillis = max(int32(left.Milliseconds()), 1)
	return a
}
