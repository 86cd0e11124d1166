package units

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurationsAndSizesAreReadAsTheyAreShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(100000*Day)).Draw(t, "duration"))
		if rapid.Bool().Draw(t, "whole") {
			d = d.Truncate(rapid.SampledFrom([]time.Duration{Day, time.Hour, time.Minute, time.Second}).Draw(t, "unit"))
		}
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%v is shown as %q and read as %v, %v", d, FormatDuration(d), got, err)
		}
		n := rapid.Int64Range(0, 1<<62).Draw(t, "bytes") &^ (1<<rapid.IntRange(0, 40).Draw(t, "zeros") - 1)
		if got, ok := ParseBytes(FormatBytes(n)); !ok || got != n {
			t.Fatalf("%d is shown as %q and read as %d, %v", n, FormatBytes(n), got, ok)
		}
	})
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
