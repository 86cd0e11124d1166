package periods_test

import (
	"testing"

	"github.com/standings/standings/internal/periods"
)

func BenchmarkAt(b *testing.B) {
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for _, p := range periods.All() {
			b.Run(zone+"/"+string(p), func(b *testing.B) {
				c := calendar(b, zone, "monday")
				b.ReportAllocs()
				for i := range int64(b.N) {
					if _, err := c.At(p, 1795248930123+i); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSpan measures the cost of an event outside the last span, and inside.
func BenchmarkSpan(b *testing.B) {
	of := []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}
	c := calendar(b, "Europe/Berlin", "monday")
	b.Run("outside", func(b *testing.B) {
		b.ReportAllocs()
		for i := range int64(b.N) {
			if _, err := c.Span(of, 1795248930123+i); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("inside", func(b *testing.B) {
		span, err := c.Span(of, 1795248930123)
		if err != nil {
			b.Fatal(err)
		}
		held := 0
		b.ReportAllocs()
		for i := range int64(b.N) {
			if span.Holds(1795248930123 + i&1023) {
				held++
			}
		}
		if held != b.N {
			b.Fatal("an instant left the span")
		}
	})
}
