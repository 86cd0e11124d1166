package ingest

import "time"

// pace adapts the number of member-windows in a call, so that a call takes about the target time. Redis
// executes one call at a time: a long call delays all other clients, and short calls have more overhead.
type pace struct {
	target time.Duration
	cost   float64 // ns per member-window, as measured recently
}

const (
	minWidth = 32
	maxWidth = 4000
	// firstCost is the assumed cost of a member-window before any measurement: with the default target of 5 ms,
	// the first piece has 500 member-windows.
	firstCost = 10 * time.Microsecond
)

// width returns the size of the next piece, in member-windows.
func (p *pace) width() int {
	cost := p.cost
	if cost == 0 {
		cost = float64(firstCost)
	}
	return int(min(max(float64(p.target)/cost, minWidth), maxWidth))
}

// observe updates the cost from the duration of a call. A small call consists mostly of its round trip, so it
// only shows that the cost of a member-window is no higher than that. Without that, pieces that became small in
// a slow period would stay small.
func (p *pace) observe(width int, took time.Duration) {
	cost := float64(took) / float64(max(width, 1))
	if width < minWidth && (width == 0 || cost >= p.cost) {
		return
	}
	if p.cost == 0 {
		p.cost = cost
		return
	}
	// A moving average, in which a call counts at most four times the average: one pause of the machine reduces
	// the pieces only a little and briefly, ten pauses reduce them lastingly.
	p.cost += 0.2 * (min(cost, 4*p.cost) - p.cost)
}
