package redissim

// Sorted sets: the boards.

import (
	"math"
	"strconv"
	"strings"
)

func zadd(t *tx, a []string) any {
	if len(a)%2 == 0 {
		return errSyntax
	}
	// All scores are parsed before the first is written.
	scores := make([]float64, len(a)/2)
	for i := range scores {
		score, valid := parseScore(a[1+2*i])
		if !valid {
			return errFloat
		}
		scores[i] = score
	}
	v, failed := t.write(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	added := int64(0)
	for i, score := range scores {
		added += integer(v.zset.add(a[2+2*i], score))
	}
	return added
}

func zincrby(t *tx, a []string) any {
	delta, valid := parseScore(a[1])
	if !valid {
		return errFloat
	}
	v, failed := t.write(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	v.zset.add(a[2], v.zset.scores[a[2]]+delta)
	return v.zset.scores[a[2]]
}

func zrem(t *tx, a []string) any {
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	if v == nil {
		return int64(0)
	}
	v = t.own(a[0], v)
	n := int64(0)
	for _, member := range a[1:] {
		n += integer(v.zset.remove(member))
	}
	t.tidy(a[0], v)
	return n
}

func zcard(t *tx, a []string) any {
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	if v == nil {
		return int64(0)
	}
	return int64(len(v.zset.scores))
}

func zcount(t *tx, a []string) any {
	low, overLow, valid := parseBound(a[1])
	high, belowHigh, both := parseBound(a[2])
	if !valid || !both {
		return errBound
	}
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	n := int64(0)
	if v != nil {
		for _, score := range v.zset.scores {
			n += integer((score > low || score == low && !overLow) && (score < high || score == high && !belowHigh))
		}
	}
	return n
}

// parseBound parses a bound of a range of scores, which is inclusive unless it begins with (.
func parseBound(text string) (score float64, without, valid bool) {
	text, without = strings.CutPrefix(text, "(")
	if text = strings.TrimLeft(text, " \t\n\v\f\r"); text == "" {
		return 0, without, true // as strtod(3) does
	}
	score, valid = parseScore(text)
	return score, without, valid
}

func zscore(t *tx, a []string) any {
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	return v.score(a[1])
}

func zmscore(t *tx, a []string) any {
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	all := make([]any, len(a)-1)
	for i, member := range a[1:] {
		all[i] = v.score(member)
	}
	return all
}

// score returns a member's score, or nil. v may be nil.
func (v *value) score(member string) any {
	if v != nil {
		if score, there := v.zset.scores[member]; there {
			return score
		}
	}
	return nil
}

func zrank(t *tx, a []string, reverse bool) any {
	v, failed := t.read(a[0], zsetKind)
	if failed != nil || v == nil {
		return failed
	}
	rank := v.zset.rank(a[1])
	if rank < 0 {
		return nil
	}
	if reverse {
		rank = len(v.zset.scores) - 1 - rank
	}
	return int64(rank)
}

func zrange(t *tx, a []string, reverse bool) any {
	first, err1 := strconv.Atoi(a[1])
	last, err2 := strconv.Atoi(a[2])
	if err1 != nil || err2 != nil {
		return errInteger
	}
	scored := len(a) == 4
	if scored && !strings.EqualFold(a[3], "WITHSCORES") {
		return errSyntax
	}
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	var rows []row
	if v != nil {
		rows = v.zset.rows()
	}
	n := len(rows)
	first, last = fromEnd(first, n), fromEnd(last, n)
	all := []any{}
	for i := max(first, 0); i <= min(last, n-1); i++ {
		r := rows[i]
		if reverse {
			r = rows[n-1-i]
		}
		if all = append(all, r.member); scored {
			all = append(all, r.score)
		}
	}
	if scored {
		return Pairs(all)
	}
	return all
}

// fromEnd converts an index of which -1 is the last.
func fromEnd(i, n int) int {
	if i < 0 {
		return max(i+n, math.MinInt)
	}
	return i
}
