package ingest

import "time"

// pace finds how many member-windows a call may carry to take about the time it
// should, from how long calls take. Redis executes one call at a time: a call
// that takes long makes everybody wait, and short ones cost more than they do.
type pace struct {
	target time.Duration
	cost   float64 // ns a member-window, as seen lately
}

const (
	minWidth = 32
	maxWidth = 4000
	// firstCost is taken for a member-window's before anything was measured: with the
	// usual 5 ms a first piece is of 500.
	firstCost = 10 * time.Microsecond
)

// width is the size of the next piece, in member-windows.
func (p *pace) width() int {
	cost := p.cost
	if cost == 0 {
		cost = float64(firstCost)
	}
	return int(min(max(float64(p.target)/cost, minWidth), maxWidth))
}

// observe takes the time of a call into account. A small call is mostly its
// round trip and says nothing of the cost of a member-window, but that it is no
// higher: else pieces that a slow spell has cut small would stay small.
func (p *pace) observe(width int, took time.Duration) {
	cost := float64(took) / float64(max(width, 1))
	if width < minWidth && (width == 0 || cost >= p.cost) {
		return
	}
	if p.cost == 0 {
		p.cost = cost
		return
	}
	// Slower at once, faster by and by: one pause of the machine shouldn't cut
	// pieces small for long, and ten should.
	p.cost += 0.2 * (min(cost, 4*p.cost) - p.cost)
}
