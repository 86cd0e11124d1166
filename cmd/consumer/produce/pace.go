package produce

import (
	"context"
	"time"

	"github.com/standings/standings/internal/retry"
)

// Pacer keeps events at a rate, in steps of a few milliseconds: a timer an event
// would cost more than the event.
type Pacer struct {
	rate  float64
	begun time.Time
	now   time.Time
	due   int64 // events that may have been made by now
}

// PaceStep is the least that Wait waits.
const PaceStep = 5 * time.Millisecond

// NewPacer begins now. A rate of 0 is as fast as it goes.
func NewPacer(rate float64) *Pacer { return &Pacer{rate: rate, begun: time.Now()} }

// Delay has all that is to come be due later.
func (p *Pacer) Delay(by time.Duration) { p.begun = p.begun.Add(by) }

// Wait returns once the event after made others is due, with the time.
func (p *Pacer) Wait(ctx context.Context, made int64) time.Time {
	if p.rate <= 0 {
		return time.Now()
	}
	for made >= p.due && ctx.Err() == nil {
		next := p.begun.Add(time.Duration(float64(made) / p.rate * float64(time.Second)))
		_ = retry.Sleep(ctx, max(time.Until(next), PaceStep)) // its end ends the loop
		p.now = time.Now()
		p.due = int64(p.now.Sub(p.begun).Seconds()*p.rate) + 1
	}
	return p.now
}
