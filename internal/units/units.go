// Package units is sizes, durations, times and counts as people write and read them.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

var byteUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseWhole takes 1_000_000 and 1e6 as well, as YAML does.
func ParseWhole(text string) (int64, error) {
	text = strings.ReplaceAll(text, "_", "")
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, nil
	}
	f, ferr := strconv.ParseFloat(text, 64)
	if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, err
	}
	return int64(f), nil
}

// ParseBytes reads a size in bytes: 64KiB, 1MiB, or a plain number.
func ParseBytes(text string) (int64, bool) {
	size := int64(1)
	for _, u := range byteUnits {
		if number, cut := strings.CutSuffix(text, u.name); cut {
			text, size = strings.TrimSpace(number), u.size
			break
		}
	}
	n, err := ParseWhole(text)
	if err != nil || n < 0 || n > math.MaxInt64/size {
		return 0, false
	}
	return n * size, true
}

// FormatBytes writes a size as ParseBytes reads it: in the largest unit that is exact.
func FormatBytes(n int64) string {
	for _, u := range byteUnits[:3] {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Day is 24 hours, whatever clocks do.
const Day = 24 * time.Hour

var errDuration = errors.New("must be a duration such as 500ms, 10s, 24h or 60d")

// ParseDuration reads what time.ParseDuration does, after weeks and days: 60d,
// 1w, 1d12h. Its error reads on from the text.
func ParseDuration(text string) (time.Duration, error) {
	sum, rest := time.Duration(0), text
	for _, u := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * Day}, {"d", Day}} {
		number, after, cut := strings.Cut(rest, u.letter)
		if !cut {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > int64(math.MaxInt64/u.length) {
			return 0, errDuration
		}
		part := time.Duration(n) * u.length
		if part > math.MaxInt64-sum {
			return 0, errDuration
		}
		sum, rest = sum+part, after
	}
	if rest != "" || text == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > math.MaxInt64-sum {
			return 0, errDuration
		}
		sum += d
	}
	return sum, nil
}

// FormatDuration writes 60d rather than 1440h0m0s.
func FormatDuration(d time.Duration) string {
	if d >= 2*Day && d%Day == 0 {
		return strconv.FormatInt(int64(d/Day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// ShortDuration writes a duration in at most two units: 350ms, 1.2s, 3m4s, 5h12m, 3d4h.
func ShortDuration(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*Day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d%Day < time.Hour:
		return fmt.Sprintf("%dd", d/Day)
	}
	return fmt.Sprintf("%dd%dh", d/Day, d%Day/time.Hour)
}

// Thousands writes 1234567 as 1,234,567.
func Thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// ShortBytes writes bytes as people read them: exact where that is short.
func ShortBytes(n int64) string {
	switch text := FormatBytes(n); {
	case n < KiB || strings.HasSuffix(text, "B"):
		return strings.TrimSuffix(text, "B") + "B"
	case n < MiB:
		return fmt.Sprintf("%.1fKiB", float64(n)/KiB)
	case n < GiB:
		return fmt.Sprintf("%.1fMiB", float64(n)/MiB)
	}
	return fmt.Sprintf("%.1fGiB", float64(n)/GiB)
}

// Plural writes 1 member, 2 members.
func Plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Thousands(n) + " " + what + "s"
}

// TimeMS writes Unix milliseconds as RFC 3339.
func TimeMS(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Names is a list for a sentence: the first few, and how many more there are.
func Names(all []string) string {
	const named = 6
	if len(all) > named {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:named], ", "), len(all)-named)
	}
	return strings.Join(all, ", ")
}
