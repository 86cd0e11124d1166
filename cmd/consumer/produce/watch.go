package produce

// A partition that acknowledges nothing is reported, and given up in the end.

import (
	"errors"
	"fmt"
	"time"
)

const (
	// publishPatience is how long a partition may acknowledge nothing before the run is
	// given up, or four timeouts of kafka.timeout where that is longer: an attempt may take two.
	publishPatience = time.Minute
	// sayAfter is how long before it is reported.
	sayAfter = 5 * time.Second
)

// begin watches the partitions: it reports those that are waited for, and gives up on one.
func (p *Publisher) begin(say func(string)) {
	p.watched.Go(func() { p.watch(say) })
}

// watch gives up once a partition has not acknowledged anything for too long, and says before
// that it is waited for: franz-go itself tries again without end, as it can't know what
// became of a request without an answer. A broker that holds requests back by a quota is
// waited for as long as it says.
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

// stuck says that a partition acknowledges nothing, and what was heard last.
func (p *Publisher) stuck(partition int, waited time.Duration) error {
	text := fmt.Sprintf("%s/%d has not acknowledged anything for %s", p.topic, partition, waited.Round(time.Second))
	if cause := p.trouble.last(); cause != nil {
		return fmt.Errorf("%s: %w", text, cause)
	}
	return errors.New(text)
}
