package units

import (
	"math/big"
	"regexp"
	"testing"
	"time"
)

// written is a duration of whole numbers, as people write one.
var written = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$`)

// A duration is the sum of its parts, or too long to be one.
func FuzzADurationIsTheSumOfItsParts(f *testing.F) {
	for _, text := range []string{"0", "500ms", "10s", "24h", "60d", "1w2d3h", "1.5h", "-1s", "99999999999w", "15250w106751d2562047h", "d", ""} {
		f.Add(text)
	}
	lengths := []time.Duration{7 * Day, Day, time.Hour, time.Minute, time.Second, time.Millisecond}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err == nil {
			if d < 0 {
				t.Fatalf("%q is %v", text, d)
			}
			if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d {
				t.Fatalf("%q is %v, shown as %q, which is %v, %v", text, d, FormatDuration(d), again, err)
			}
		}
		parts := written.FindStringSubmatch(text)
		if parts == nil || text == "" {
			return
		}
		sum := new(big.Int)
		for i, part := range parts[1:] {
			if part != "" {
				n, _ := new(big.Int).SetString(part, 10)
				sum.Add(sum, n.Mul(n, big.NewInt(int64(lengths[i]))))
			}
		}
		if fits := sum.IsInt64(); fits != (err == nil) || fits && sum.Int64() != int64(d) {
			t.Fatalf("%q is %v ns and read as %d, %v", text, sum, d, err)
		}
	})
}

// Sizes are those of the range or refused, and shown so that they are read as the same.
func FuzzASizeIsReadAsItIsShown(f *testing.F) {
	for _, text := range []string{"0", "64KiB", "1MiB", "1_000", "1e6", "9007199254740993GiB", "8388608 GiB", "-1", "1e-3", "B", "0x10", "NaN"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := ParseBytes(text)
		if !ok {
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d", text, n)
		}
		if again, ok := ParseBytes(FormatBytes(n)); !ok || again != n {
			t.Fatalf("%q is %d, shown as %q, which is %d", text, n, FormatBytes(n), again)
		}
		if m, err := ParseWhole(text); err == nil && m != n {
			t.Fatalf("%q is %d bytes and the number %d", text, n, m)
		}
		_ = ShortBytes(n)
	})
}
