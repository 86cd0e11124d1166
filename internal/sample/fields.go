package sample

// The fields of an event, appended as JSON. Each except the first begins with a comma, so that a fault can omit a
// field or write another.

import (
	"strconv"
	"time"
)

// crockford has the digits of a ULID (github.com/ulid/spec).
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// appendHead opens the object with a unique id: a ULID of the current time and 80 random bits.
func (g *Generator) appendHead(buf []byte) []byte {
	buf = append(buf, `{"event_id":"`...)
	for shift := 45; shift >= 0; shift -= 5 {
		buf = append(buf, crockford[g.now>>shift&31])
	}
	high, low := g.source.Uint64(), g.source.Uint64()
	for shift := 35; shift >= 0; shift -= 5 {
		buf = append(buf, crockford[high>>shift&31])
	}
	for shift := 35; shift >= 0; shift -= 5 {
		buf = append(buf, crockford[low>>shift&31])
	}
	return append(buf, '"')
}

// appendBoard writes a board's name, or a list of distinct names if BoardsPerEvent permits several.
func (g *Generator) appendBoard(buf []byte) []byte {
	if len(g.boards) == 0 {
		return buf
	}
	n := min(g.options.BoardsPerEvent, len(g.boards))
	if n > 1 {
		n = 1 + g.random.IntN(n)
	}
	buf = append(buf, `,"board":`...)
	if n == 1 {
		return append(buf, g.boards[g.random.IntN(len(g.boards))]...)
	}
	for i := range n { // the first n of a partial shuffle
		j := i + g.random.IntN(len(g.picked)-i)
		g.picked[i], g.picked[j] = g.picked[j], g.picked[i]
		if i == 0 {
			buf = append(buf, '[')
		} else {
			buf = append(buf, ',')
		}
		buf = append(buf, g.boards[g.picked[i]]...)
	}
	return append(buf, ']')
}

// appendUser writes a generated name, which needs no escaping.
func appendUser(buf, user []byte) []byte {
	buf = append(buf, `,"user_id":"`...)
	buf = append(buf, user...)
	return append(buf, '"')
}

func (g *Generator) appendPoints(buf []byte) []byte {
	points := g.options.PointsMin + g.random.Int64N(g.options.PointsMax-g.options.PointsMin+1)
	if g.options.Corrections > 0 && g.random.Float64() < g.options.Corrections {
		points = -points
	}
	buf = append(buf, `,"points":`...)
	return strconv.AppendInt(buf, points, 10)
}

func (g *Generator) appendTime(buf []byte) []byte {
	at := g.now
	if g.spread > 0 {
		at -= g.random.Int64N(g.spread)
	}
	buf = append(buf, `,"occurred_at":"`...)
	buf = g.clock.append(buf, at)
	return append(buf, '"')
}

// clock writes RFC 3339 with milliseconds, in UTC. It caches the last date, since formatting the date is most of the
// work.
type clock struct {
	day  int64 // since 1970
	date []byte
}

const dayMS = 24 * 60 * 60 * 1000

func (c *clock) append(buf []byte, ms int64) []byte {
	if day := ms / dayMS; c.date == nil || day != c.day {
		c.day = day
		c.date = time.UnixMilli(ms).UTC().AppendFormat(c.date[:0], "2006-01-02T")
	}
	buf = append(buf, c.date...)
	rest := ms % dayMS
	buf = two(buf, rest/3_600_000)
	buf = append(buf, ':')
	buf = two(buf, rest/60_000%60)
	buf = append(buf, ':')
	buf = two(buf, rest/1000%60)
	buf = append(buf, '.', '0'+byte(rest/100%10))
	buf = two(buf, rest%100)
	return append(buf, 'Z')
}

func two(buf []byte, n int64) []byte {
	return append(buf, '0'+byte(n/10), '0'+byte(n%10))
}
