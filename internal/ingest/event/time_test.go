package event

import (
	"math"
	"strings"
	"testing"
)

func TestOccurredAtIsATimeByRFC3339CutToMilliseconds(t *testing.T) {
	const at = 1795248930000 // 2026-11-21T08:15:30Z
	for _, c := range []struct {
		text string
		want int64
	}{
		{"2026-11-21T08:15:30Z", at}, {"2026-11-21t08:15:30z", at}, {"2026-11-21T08:15:30.123Z", at + 123}, {"2026-11-21T08:15:30.1Z", at + 100},
		{"2026-11-21T08:15:30.9999Z", at + 999}, {"2026-11-21T08:15:30.0009Z", at}, {"2026-11-21T08:15:30." + strings.Repeat("9", 100_000) + "Z", at + 999},
		{"2026-11-21T09:15:30+01:00", at}, {"2026-11-21T08:15:30-00:00", at}, {"2026-11-21T08:15:30+00:00", at}, {"2026-11-20T08:16:30.5-23:59", at + 500}, {"2026-11-22T08:14:30+23:59", at},
		{"2026-11-21T13:45:30+05:30", at}, {`2026-11-21T08:15:30\u005a`, at}, {`2026\u002d11-21T08:15:30.123\u005A`, at + 123},
		{"1970-01-01T00:00:00Z", 0}, {"1970-01-01T00:00:00.0001Z", 0}, {"1969-12-31T23:00:00-01:00", 0}, {"2024-02-29T00:00:00Z", 1709164800000}, {"2000-02-29T00:00:00Z", 951782400000},
		{"2016-12-31T23:59:60Z", 1483228800000}, {"2016-12-31T23:59:60.5Z", 1483228800500}, {"2016-12-31T18:59:60-05:00", 1483228800000}, {"2015-07-01T08:59:60+09:00", 1435708800000},
	} {
		if got := good(t, rules(), with("occurred_at", `"`+c.text+`"`), now).Time; got != c.want {
			t.Errorf("%.60s: got %d, want %d", c.text, got, c.want)
		}
	}
	for _, text := range []string{
		"", "x", "now", "1795248930000", "2026-11-21", "2026-11-21T08:15:30", "2026-11-21T08:15Z", "2026-11-21 08:15:30Z", "20261121T081530Z", "2026-11-21T08:15:30 Z", " 2026-11-21T08:15:30Z", "2026-11-21T08:15:30Z ",
		"2026-11-21T8:15:30Z", "2026-11-21T08:15:30,5Z", "2026-11-21T08:15:30.Z", "2026-11-21T08:15:30.+01:00", "2026-11-21T08:15:30.5", "2026-11-21T08:15:30+01", "2026-11-21T08:15:30+0100", "2026-11-21T08:15:30+1:00", "2026-11-21T08:15:30*01:00",
		"2026-11-21T08:15:30+24:00", "2026-11-21T08:15:30+00:60", "2026-11-21T08:15:30+-1:00", "2026-11-21T24:00:00Z", "2026-11-21T08:60:00Z", "2026-11-21T08:15:61Z", "2026-11-21T08:15:60Z", "2026-11-21T23:59:60Z", "2026-11-30T23:59:60+01:00", "2017-01-01T05:59:60Z", "2017-01-01T00:04:60Z",
		"2026-00-21T08:15:30Z", "2026-13-21T08:15:30Z", "2026-11-00T08:15:30Z", "2026-11-31T08:15:30Z", "2026-02-29T08:15:30Z", "2100-02-29T00:00:00Z", "2026-1-021T08:15:30Z", "+026-11-21T08:15:30Z", "12026-11-21T08:15:30Z", "٢٠٢٦-11-21T08:15:30Z",
		`2026-11-21T08:15:30Z\ud800`, `2026-11-21T08:15:30Z\u0000`, `2026-11-21T08:15:30ZZ`,
		"1969-12-31T23:59:59Z", "1969-12-31T23:59:59.9999Z", "1970-01-01T00:30:00+01:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
	} {
		refused(t, rules(), with("occurred_at", `"`+text+`"`), -1, BadTime) // no record time bounds it
	}
}

func TestOccurredAtIsUnixMillisecondsByValue(t *testing.T) {
	for _, c := range []struct {
		json string
		want int64
	}{{"1795248930123", 1795248930123}, {"0", 0}, {"-0", 0}, {"1795248930123.0", 1795248930123}, {"1.795248930123e12", 1795248930123}, {"179524893012300e-2", 1795248930123}, {"null", now}, {"99999999", 99_999_999}, {"10000000000", 10_000_000_000}} {
		if got := good(t, rules(), with("occurred_at", c.json), now).Time; got != c.want {
			t.Errorf("%s: got %d, want %d", c.json, got, c.want)
		}
	}
	for _, json := range []string{"-1", "100000000", "1795248930", "9999999999", "1.79524893e9", "1795248930123.5", "1e400", "-1e400", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "4294967296000", "true", "{}", "[]", "[1]"} {
		refused(t, rules(), with("occurred_at", json), now, BadTime)
	}
}

func TestOccurredAtMayLieAsFarPastTheRecordAsConfigured(t *testing.T) {
	good(t, rules(), with("occurred_at", "1795249231000"), now)
	good(t, rules(), with("occurred_at", `"2026-11-21T08:20:31.0009Z"`), now) // it is truncated first
	refused(t, rules(), with("occurred_at", "1795249231001"), now, BadTime)
	refused(t, rules(), with("occurred_at", `"2026-11-21T08:20:31.001Z"`), now, BadTime)
	good(t, rules(), with("occurred_at", "0"), math.MaxInt64)
	good(t, rules(), with("occurred_at", "300001"), 1)
	refused(t, rules(), with("occurred_at", "300002"), 1, BadTime)

	r := rules()
	r.MaxFuture = math.MaxInt64
	good(t, r, with("occurred_at", "4294967295999"), 1)
	refused(t, r, with("occurred_at", "4294967296000"), 1, BadTime)
}

func TestARecordWithoutATimeNeedsOccurredAtAndDoesNotBoundIt(t *testing.T) {
	for _, recordTime := range []int64{-1, 0, math.MinInt64} {
		refused(t, rules(), `{"user_id":1,"points":1}`, recordTime, BadTime)
		refused(t, rules(), with("occurred_at", "null"), recordTime, BadTime)
		if got := good(t, rules(), with("occurred_at", "4294967295999"), recordTime).Time; got != 4294967295999 {
			t.Errorf("record time %d: got %d", recordTime, got)
		}
		good(t, rules(), with("occurred_at", `"2106-02-07T06:28:15.999Z"`), recordTime)
		refused(t, rules(), with("occurred_at", `"2106-02-07T06:28:16Z"`), recordTime, BadTime)
		refused(t, rules(), with("occurred_at", "4294967296000"), recordTime, BadTime)
	}
}

func TestARecordTimeThatNoWindowHoldsIsNoTimeForAnEvent(t *testing.T) {
	if got := good(t, rules(), `{"user_id":1,"points":1}`, 4294967295999).Time; got != 4294967295999 {
		t.Errorf("got %d", got)
	}
	if got := good(t, rules(), `{"user_id":1,"points":1}`, 1).Time; got != 1 {
		t.Errorf("got %d", got)
	}
	refused(t, rules(), `{"user_id":1,"points":1}`, 4294967296000, BadTime)
	refused(t, rules(), `{"user_id":1,"points":1}`, math.MaxInt64, BadTime)
}
