package event

// Strict RFC 3339 times: time.Parse accepts 8:15 for 08:15, a comma for the point, and offsets of more than a
// day, so two programs could read one event differently.

import "time"

// rfc3339 returns the Unix time, in ms, of a date-time by RFC 3339, section 5.6, truncated to milliseconds. T
// and Z may be lower case, as that section allows. A space instead of the T needs an agreement between
// applications, so it is refused. A leap second, which is accepted only at a month's end in UTC (section 5.7),
// is the second after it, as in POSIX.
func rfc3339(text []byte) (ms int64, ok bool) {
	// 2026-11-21T08:15:30 and at least a Z.
	if len(text) < 20 || text[4] != '-' || text[7] != '-' || text[10]|0x20 != 't' || text[13] != ':' || text[16] != ':' {
		return 0, false
	}
	century, yearOf := two(text, 0), two(text, 2)
	month, day := two(text, 5), two(text, 8)
	hour, minute, second := two(text, 11), two(text, 14), two(text, 17)
	if century < 0 || yearOf < 0 || minute < 0 || second < 0 ||
		month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	year := century*100 + yearOf
	if day > 28 && day > daysIn(year, month) {
		return 0, false
	}
	milli, rest, ok := fraction(text[19:])
	if !ok {
		return 0, false
	}
	offset, ok := zone(rest)
	if !ok {
		return 0, false
	}
	unix := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Unix() - offset
	if second == 60 {
		next := time.Unix(unix, 0).UTC()
		if next.Day() != 1 || next.Hour() != 0 || next.Minute() != 0 {
			return 0, false
		}
	}
	return unix*1000 + milli, true
}

// two returns the number of two digits, or a negative number if they are not digits.
func two(text []byte, at int) int {
	a, b := text[at]-'0', text[at+1]-'0'
	if a > 9 || b > 9 {
		return -1
	}
	return int(a)*10 + int(b)
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// fraction reads the milliseconds of a point and one or more digits, if there is a point, and returns the rest
// of the text.
func fraction(text []byte) (milli int64, rest []byte, ok bool) {
	if text[0] != '.' {
		return 0, text, true
	}
	i, unit := 1, int64(100)
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		milli += int64(text[i]-'0') * unit
		unit /= 10
	}
	return milli, text[i:], i > 1
}

// zone returns how far the local time is ahead of UTC, in seconds: Z or ±hh:mm.
func zone(text []byte) (seconds int64, ok bool) {
	switch {
	case len(text) == 1 && text[0]|0x20 == 'z':
		return 0, true
	case len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':':
		return 0, false
	}
	hours, minutes := two(text, 1), two(text, 4)
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	seconds = int64(hours*3600 + minutes*60)
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
