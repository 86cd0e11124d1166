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
