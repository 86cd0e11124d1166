package fold

import (
	"math"

	"github.com/standings/standings/internal/periods"
)

// Rules decide which windows an event counts in.
type Rules struct {
	Periods []Period // at most MaxPeriods
	// Boards are the boards with their own rules or periods, by name. The entry rules.AnyBoard is for boards
	// without an entry. If there is no such entry either, a board has the default rule and all periods.
	Boards map[string]*Board
	// Names is true if events give members their display names.
	Names bool

	borders *Borders // that bind the periods' rules; nil: none
}

// Period is a period that events count in.
type Period struct {
	Rule periods.Rule
	// Lateness is how long after its end a window accepts events, by record time, in ms.
	Lateness int64
}

// BuiltIn returns rules with built-in periods that have the same calendar and lateness (ms).
func BuiltIn(c periods.Calendar, lateness int64, names ...periods.Period) Rules {
	var r Rules
	for _, name := range names {
		r.Periods = append(r.Periods, Period{periods.BuiltIn(name, c), lateness})
	}
	return r
}

// MaxPeriods is the maximum number of periods.
const MaxPeriods = 32

// Windows returns the windows that an event on these boards counts in, by its time and its record's time, in
// ms. If there are none, the result is Late or Early, else Added. It returns an error if a calendar has no
// window for the event's time.
func (r *Rules) Windows(boards [][]byte, time, recordTime int64) ([]periods.Window, Result, error) {
	s, err := r.span(time)
	if err != nil {
		return nil, 0, err
	}
	var all []periods.Window
	kept := r.PeriodsOf(boards)
	for i, w := range s.Windows {
		if kept&s.taken(recordTime)&(1<<i) != 0 {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil, s.left(kept), nil
	}
	return all, Added, nil
}

// span is a stretch of time in which no period changes its window, and the data that decide which of these
// windows accept an event.
type span struct {
	periods.Span
	// until has, for each window, the latest record time of an event that it accepts.
	until []int64
	// all has one bit for each window that accepts any event. first is the lowest until among them: most events
	// have an earlier record time.
	all   uint32
	first int64
	// ahead has one bit for each period whose first window starts after the span.
	ahead uint32
	// sealed has one bit for each window that is final on some board.
	sealed uint32
	// unsettled are the borders of its windows that are not settled. near is the latest record time of an event
	// that needs them.
	unsettled []Unsettled
	near      int64
}

// left returns the result for an event that no window of the kept periods accepts: Early if all of their
// windows are later, else Late.
func (s *span) left(kept uint32) Result {
	if kept&(1<<len(s.until)-1)&^s.ahead == 0 {
		return Early
	}
	return Late
}

// never is a record time that no record has: a period without a window accepts no event.
const never = math.MinInt64

func (r *Rules) span(time int64) (span, error) {
	rules := make([]periods.Rule, len(r.Periods))
	for i := range rules {
		rules[i] = r.Periods[i].Rule
	}
	of, err := periods.SpanOf(rules, time)
	if err != nil {
		return span{}, err
	}
	s := span{Span: of, until: make([]int64, len(rules)), first: math.MaxInt64}
	for i, w := range of.Windows {
		if _, place, _ := rules[i].At(time); place == periods.Before { // SpanOf would have failed
			s.ahead |= 1 << i
		}
		switch lateness := r.Periods[i].Lateness; {
		case w == periods.Window{}:
			s.until[i] = never
		case w.End > math.MaxInt64-lateness:
			s.until[i] = math.MaxInt64
		default:
			s.until[i] = w.End + lateness
		}
		if s.until[i] != never {
			s.all, s.first = s.all|1<<i, min(s.first, s.until[i])
		}
	}
	r.settles(&s)
	return s, nil
}

// taken returns the windows that accept an event of this record time, one bit each: those whose end plus
// lateness is not before it.
func (s *span) taken(recordTime int64) uint32 {
	if recordTime <= s.first {
		return s.all
	}
	bits := uint32(0)
	for i, until := range s.until {
		if recordTime <= until && until != never {
			bits |= 1 << i
		}
	}
	return bits
}

// targets gives a small number, the target, to each set of windows that events of a batch count in. Most
// batches have one or a few.
//
