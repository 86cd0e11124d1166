package ingest

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// A quota of Kafka's: a partition that it slows down runs, and says so; one that gets
// nothing at all for a while waits.

const (
	// throttleShown is how long after its last throttled answer a partition counts as
	// throttled: brokers count in windows of some ten seconds.
	throttleShown = 30 * time.Second
	// throttleStarves is how long a partition may be throttled without any other
	// answer until it counts as waiting.
	throttleStarves = time.Minute
	// throttlePatience and outagePatience are how long memory that others wait for is
	// held where a broker answers only that it is to be left alone, and where it doesn't
	// answer. To give a batch up is to read it again, by the same quota: so that comes
	// last, while in an outage others may have brokers that do answer.
	throttlePatience = 5 * time.Minute
	outagePatience   = 10 * time.Second
)

// throttleSlows is said of a partition that runs throttled, of all in the same words.
const throttleSlows = "a quota of Kafka's slows it down: brokers ask it to wait between its fetches"

const throttleRemedy = "raise the quota (consumer_byte_rate) of this user or of client id standings if that is too slow: " +
	"ten seconds of it have to hold the largest record batch; it goes on by itself"

// throttled takes note of how long a broker asks to be left alone; mostly it doesn't.
func (w *worker) throttled(d time.Duration) {
	if d == 0 {
		return
	}
	w.Stats.Throttled.Add(int64(d))
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	if !w.state.isThrottled() {
		w.log.Info("a quota of Kafka's slows the partition down", zap.Duration("first_wait", d))
	}
	w.state.throttledAt, w.state.throttledFor = time.Now(), d
}

func (s *status) isThrottled() bool {
	return s.throttledFor > 0 && time.Since(s.throttledAt.Add(s.throttledFor)) < throttleShown
}

// starved is what a partition waits for that has got nothing but throttled answers
// for a while.
func starved(field string, since time.Time) error {
	return &Waiting{WaitsThrottled, fmt.Errorf("%s has got nothing since %s: a quota of Kafka's holds back every answer",
		field, since.UTC().Format(time.RFC3339)), throttleRemedy}
}

// yields reports whether a batch that is held goes to others who wait for memory, after a
// wait for the broker since a moment: it is read again then, in another turn. Where none
// is held, a turn isn't held through a wait for the broker at all. After an error the
// reader asks on without a reserve, and queues once there is an answer that needs one: in
// the queue those whose brokers have nothing for them would keep it from the others, turn
// after turn. After a throttled answer it queues once it may ask (see turnAgain).
func (r *reader) yields(since time.Time, patience time.Duration) bool {
	r.fetcher.Free()
	if !r.holds() {
		r.endTurn()
		return false
	}
	if time.Since(since) < patience || !r.memory.Wanted() {
		return false
	}
	r.endTurn()
	return true
}

// turnAgain waits until the broker may be asked again, and then for a turn: an answer that
// there is no memory for is paid for by the quota all the same.
func (r *reader) turnAgain(ctx context.Context) error {
	if err := r.fetcher.Pause(ctx); err != nil {
		return err
	}
	return r.waitForMemory(ctx)
}
