package simulate

// This file simulates Redis's clock, which jumps.

import "time"

// jump is a jump of Redis's clock.
type jump struct {
	at time.Time
	by time.Duration
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }

// jumps makes Redis's clock jump.
func (w *world) jumps(by time.Duration) {
	w.peak = w.latest()
	w.skew.Add(int64(by))
	w.jumped = append(w.jumped, jump{time.Now(), by})
}

// latest returns the latest time that Redis's clock has shown. A window that had expired then may lack
// events, even if the clock went back and the window lives again.
func (w *world) latest() time.Time {
	if now := w.now(); now.After(w.peak) {
		return now
	}
	return w.peak
}

// earliest returns the earliest time that Redis's clock has shown recently: a process may have seen it
// before it wrote a start.
func (w *world) earliest() time.Time {
	const ago = 30 * time.Second
	at := w.now()
	earliest := at
	for i := len(w.jumped) - 1; i >= 0 && time.Since(w.jumped[i].at) < ago; i-- {
		if at = at.Add(-w.jumped[i].by); at.Before(earliest) {
			earliest = at
		}
	}
	return earliest
}
