package simulate

// This file makes brokers answer fetches without records although there are some. A quota throttles a
// client and reports for how long; a broker answers empty at once; one fetch in four fails, and in the
// middle of a sweep every other. Each lasts for a while, or to the end of the world; nevertheless,
// everything must be read.

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

// hindrance is the current obstacle to fetches.
type hindrance struct {
	kind  string
	until time.Time // zero: none
	stays bool      // until the end of the world
	pause time.Duration
	mutes bool // a throttled client is not served until then
	full  bool // the response contains records in addition to the throttle time, as from old brokers
	cuts  bool // failed fetches cut the connection

	fetches map[connection]int
	free    map[connection]time.Time // when the client is served again
	told    map[connection]time.Time // until when the client is muted
}

// connection identifies the fetches of one process for one partition.
type connection struct {
	of        *process
	partition int
}

func (c *call) connection() connection { return connection{c.from, c.partition} }

// hinder starts a hindrance.
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
	return false // counted when it takes effect
}

// muted reports whether a broker does not read a call yet.
func (h *hindrance) muted(c *call) bool { return h.mutes && time.Now().Before(h.told[c.connection()]) }

// hindered returns the response to a fetch that is hindered; nil if it is not. The caller holds the world's
// lock.
func (w *world) hindered(c *call, q *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	h := &w.kafka.hindrance
	if h.until.IsZero() || !h.stays && (w.ending || time.Now().After(h.until)) {
		return nil, nil
	}
	log := w.kafka.partitions[c.partition]
	if _, stable := log.shown(); c.offset >= stable || c.offset < log.start {
		return nil, nil // there are no records to withhold
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

// throttle returns the response to a client that has used up the quota; nil if it has not.
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
