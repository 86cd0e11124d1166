package health

import (
	"time"

	"go.uber.org/zap"
)

// A quota of Kafka's: a partition that it slows down runs, and says so; one that gets
// nothing at all for a while waits.

const (
	// ThrottleShown is how long after its last throttled answer a partition counts as
	// throttled: brokers count in windows of some ten seconds.
	ThrottleShown = 30 * time.Second
)

// throttleSlows is said of a partition that runs throttled, of all in the same words.
const throttleSlows = "a quota of Kafka's slows it down: brokers ask it to wait between its fetches"

const ThrottleRemedy = "raise the quota (consumer_byte_rate) of this user or of client id standings if that is too slow: " +
	"ten seconds of it have to hold the largest record batch; it goes on by itself"

// Throttled takes note of how long a broker asks to be left alone; mostly it doesn't.
func (s *Status) Throttled(d time.Duration) {
	if d == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isThrottled() {
		s.log.Info("a quota of Kafka's slows the partition down", zap.Duration("first_wait", d))
	}
	s.throttledAt, s.throttledFor = time.Now(), d
}

func (s *Status) isThrottled() bool {
	return s.throttledFor > 0 && time.Since(s.throttledAt.Add(s.throttledFor)) < ThrottleShown
}
