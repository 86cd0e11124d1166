package windows

import "time"

// TimeForm is how exactly a time is written that is known to the tick.
func TimeForm(tick time.Duration) string {
	switch {
	case tick <= time.Millisecond:
		return "2006-01-02 15:04:05.000"
	case tick <= 10*time.Millisecond:
		return "2006-01-02 15:04:05.00"
	case tick <= 100*time.Millisecond:
		return "2006-01-02 15:04:05.0"
	case tick < time.Minute:
		return time.DateTime
	}
	return "2006-01-02 15:04"
}
