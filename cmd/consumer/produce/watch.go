package produce

// This file reports a partition that acknowledges nothing, and finally gives up.

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// publishPatience is how long a partition may acknowledge nothing before the run gives up, or four
	// times kafka.timeout if that is longer: one attempt may take two timeouts.
	publishPatience = time.Minute
	// sayAfter is how long a partition may acknowledge nothing before it is reported.
	sayAfter = 5 * time.Second
)

// watch reports a partition that has acknowledged nothing for a while, and gives up after patience.
// franz-go itself retries forever, because it cannot know whether a request without a response was
// executed. While a quota throttles requests, watch does not give up.
func (p *Publisher) watch() {
	tick := time.NewTicker(max(p.Patience/100, time.Millisecond))
	defer tick.Stop()
	acknowledged := make([]int64, len(p.lanes))
	since := make([]time.Time, len(p.lanes))
	said := time.Now()
	for {
		var now time.Time
		select {
		case now = <-tick.C:
		case <-p.done:
			return
		}
		longest := 0
		for i := range p.lanes {
			n := p.lanes[i].acknowledged.Load()
			if since[i].IsZero() || n != acknowledged[i] || n == p.lanes[i].taken.Load() {
				acknowledged[i], since[i] = n, now
			}
			if since[i].Before(since[longest]) {
				longest = i
			}
		}
		waited := now.Sub(since[longest])
		if waited >= p.Patience && !p.trouble.throttled(now) {
			p.giveUp(p.stuck(longest, waited))
			return
		}
		if p.Say != nil && waited >= sayAfter && now.Sub(said) >= sayAfter {
			said = now
			p.Say(p.stuck(longest, waited).Error())
		}
	}
}

// stuck returns the error for a partition that acknowledges nothing, with the most recent cause.
func (p *Publisher) stuck(partition int, waited time.Duration) error {
	text := fmt.Sprintf("%s/%d has not acknowledged anything for %s", p.Topic, partition, waited.Round(time.Second))
	if cause := p.trouble.last(); cause != nil {
		return fmt.Errorf("%s: %w", text, cause)
	}
	return errors.New(text)
}

// trouble observes a producer: the errors in its log, and quotas. It reads the whole log at debug level, because there
// are few requests compared with records. Results come only at the end of all retries.
type trouble struct {
	cause atomic.Pointer[error]
	until atomic.Pointer[time.Time] // until then a broker throttles requests because of a quota
}

// throttled reports whether a broker is throttling requests.
func (t *trouble) throttled(now time.Time) bool {
	until := t.until.Load()
	return until != nil && now.Before(*until)
}

// OnBrokerThrottle records that a quota throttles requests.
func (t *trouble) OnBrokerThrottle(_ kgo.BrokerMetadata, wait time.Duration, _ bool) {
	until, err := time.Now().Add(wait), fmt.Errorf("a quota of the broker's holds requests back for %s", wait)
	t.until.Store(&until)
	t.cause.Store(&err)
}

// last returns the most recent error; nil if there was none.
func (t *trouble) last() error {
	if cause := t.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Level makes franz-go log everything.
func (*trouble) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// Log records errors. The error of a partition that franz-go retries appears only in the text, under "to":
// "points[3{retrying@-1,20(NOT_ENOUGH_REPLICAS: …)}]".
func (t *trouble) Log(_ kgo.LogLevel, message string, pairs ...any) {
	for i := 1; i < len(pairs); i += 2 {
		switch value := pairs[i].(type) {
		case error:
			t.cause.Store(&value)
		case string:
			if message == "produced" {
				t.retried(value)
			}
		}
	}
}

func (t *trouble) retried(text string) {
	if _, text, found := strings.Cut(text, "{retrying@"); found {
		_, text, _ = strings.Cut(text, "(")
		text, _, _ = strings.Cut(text, ")")
		err := errors.New(text)
		t.cause.Store(&err)
	}
}
