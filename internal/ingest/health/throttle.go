package health

import (
	"time"

	"go.uber.org/zap"
)

// Kafka quotas: a throttled partition still runs, and reports the throttle. If it gets no records for a while,
// it waits.

const (
	// ThrottleShown is how long after the last throttled answer a partition is shown as throttled. Brokers
	// measure quotas in windows of about ten seconds.
	ThrottleShown = 30 * time.Second
)

// throttleSlows describes a throttled partition. The text is the same for all partitions.
const throttleSlows = "a quota of Kafka's slows it down: brokers ask it to wait between its fetches"

const ThrottleRemedy = "raise the quota (consumer_byte_rate) of this user or of client id standings if that is too slow: " +
	"ten seconds of it have to hold the largest record batch; it goes on by itself"

// Throttled records for how long a broker throttles the partition. It is 0 for most answers.
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
