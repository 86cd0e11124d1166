package units

import (
	"testing"
	"time"
)

func TestDurationsAndSizesAreRead(t *testing.T) {
	for text, want := range map[string]time.Duration{"1w": 7 * Day, "1d12h": 36 * time.Hour, "1w2d3h": 219 * time.Hour, "0": 0, "1.5h": 90 * time.Minute} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "1d1w", "-1d", "-1s", "1.5d", "1", "99999999999w", "10000000w10000000w", "106751d24h"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "1.5MiB", "1MB", "9007199254740993GiB"} {
		if got, ok := ParseBytes(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestThousandsAreSetApart(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
}
