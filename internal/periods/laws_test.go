package periods_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/periods"
)

// drawn draws a calendar, a period and an instant, often with unusual clocks and near borders.
func drawn(t *rapid.T) (c periods.Calendar, p periods.Period, ms int64) {
	zone := rapid.SampledFrom(odd).Draw(t, "zone")
	day := rapid.SampledFrom([]string{"monday", "saturday", "sunday", "friday"}).Draw(t, "week start")
	c, err := periods.NewCalendar(zone, day)
	if err != nil {
		t.Fatal(err)
	}
	p = rapid.SampledFrom(periods.All()).Draw(t, "period")
	ms = rapid.Int64Range(0, periods.MaxTime-1).Draw(t, "ms")
	if rapid.Bool().Draw(t, "near a border") {
		w, err := c.At(periods.Daily, ms)
		if err != nil {
			t.Fatal(err)
		}
		near := w.End + rapid.Int64Range(-2, 2).Draw(t, "off")
		ms = max(0, min(near, periods.MaxTime-1))
	}
	return c, p, ms
}

func at(t *rapid.T, c periods.Calendar, p periods.Period, ms int64) periods.Window {
	w, err := c.At(p, ms)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAnInstantLiesInItsWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p, ms := drawn(t)
		w := at(t, c, p, ms)
		if w.Period != p || ms < w.Start || ms >= w.End || w.Start%1000 != 0 || w.End%1000 != 0 {
			t.Errorf("%s at %d: %+v", p, ms, w)
		}
	})
}

func TestInstantsShareAWindowOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p, ms := drawn(t)
		w := at(t, c, p, ms)
		other := rapid.Int64Range(max(0, w.Start-1e9), min(w.End+1e9, periods.MaxTime)-1).Draw(t, "other")
		v := at(t, c, p, other)
		if within := w.Start <= other && other < w.End; within != (v == w) {
			t.Errorf("%d lies in %+v, %d in %+v", ms, w, other, v)
		}
	})
}

func TestWindowsTileTimeAndSortByName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p, ms := drawn(t)
		w := at(t, c, p, ms)
		if next, ok := c.Next(w); ok {
			if back, ok := c.Previous(next); next.Start != w.End || !ok || back != w || next.Name <= w.Name {
				t.Errorf("after %+v comes %+v, before that %+v", w, next, back)
			}
		} else if w.End < periods.MaxTime {
			t.Errorf("nothing comes after %+v", w)
		}
		if before, ok := c.Previous(w); ok {
			if next, ok := c.Next(before); before.End != w.Start || !ok || next != w || before.Name >= w.Name {
				t.Errorf("before %+v comes %+v, after that %+v", w, before, next)
			}
		} else if w.Start > 0 {
			t.Errorf("nothing comes before %+v", w)
		}
	})
}

func TestAWindowIsFoundByItsName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p, ms := drawn(t)
		w := at(t, c, p, ms)
		if named, err := c.Named(p, w.Name); err != nil || named != w {
			t.Errorf("%+v is named as %+v, %v", w, named, err)
		}
	})
}

func TestASpanIsTheLongestStretchWithTheSameWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _, ms := drawn(t)
		of := rapid.SliceOfN(rapid.SampledFrom(periods.All()), 0, 6).Draw(t, "periods")
		span, err := c.Span(of, ms)
		if err != nil || !span.Holds(ms) || len(span.Windows) != len(of) {
			t.Fatalf("%v at %d: %+v, %v", of, ms, span, err)
		}
		same := func(ms int64) bool {
			for i, p := range of {
				if at(t, c, p, ms) != span.Windows[i] {
					return false
				}
			}
			return true
		}
		inside := rapid.Int64Range(span.Start, span.End-1).Draw(t, "inside")
		if !same(ms) || !same(inside) || !same(span.Start) || !same(span.End-1) {
			t.Errorf("%v: other windows inside %+v", of, span)
		}
		if span.Start > 0 && same(span.Start-1) || span.End < periods.MaxTime && same(span.End) {
			t.Errorf("%v: the same windows outside %+v", of, span)
		}
	})
}
