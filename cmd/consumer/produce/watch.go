package produce

// This file reports a partition that acknowledges nothing, and finally gives up.

import (
	"errors"
	"fmt"
	"time"
)

const (
	// publishPatience is how long a partition may acknowledge nothing before the run gives up, or four
	// times kafka.timeout if that is longer: one attempt may take two timeouts.
	publishPatience = time.Minute
	// sayAfter is how long a partition may acknowledge nothing before it is reported.
	sayAfter = 5 * time.Second
)

// begin starts watching the partitions.
func (p *Publisher) begin(say func(string)) {
	p.watched.Go(func() { p.watch(say) })
}

// watch reports a partition that has acknowledged nothing for a while, and gives up after patience.
// franz-go itself retries forever, because it cannot know whether a request without a response was
// executed. While a quota throttles requests, watch does not give up.
func (p *Publisher) watch(say func(string)) {
	tick := time.NewTicker(max(p.patience/100, time.Millisecond))
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
		if waited >= p.patience && !p.trouble.throttled(now) {
			p.giveUp(p.stuck(longest, waited))
			return
		}
		if waited >= sayAfter && now.Sub(said) >= sayAfter {
			said = now
			say(p.stuck(longest, waited).Error())
		}
	}
}

// stuck returns the error for a partition that acknowledges nothing, with the most recent cause.
func (p *Publisher) stuck(partition int, waited time.Duration) error {
	text := fmt.Sprintf("%s/%d has not acknowledged anything for %s", p.topic, partition, waited.Round(time.Second))
	if cause := p.trouble.last(); cause != nil {
		return fmt.Errorf("%s: %w", text, cause)
	}
	return errors.New(text)
}
