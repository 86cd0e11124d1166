package ranking

// Where the members of several shards make up one, what that is to keep of what each of them has.

import (
	"cmp"
	"strconv"
	"strings"
)

// LaterOrigin is the later offset and the later time of two origins: of what two shards have, whole is
// what both have.
func LaterOrigin(a, b string) string {
	as, bs := strings.Fields(a), strings.Fields(b)
	if len(as) != 2 || len(bs) != 2 {
		return cmp.Or(b, a) // one alone; what can't be read stays so
	}
	return laterOf(as[0], bs[0]) + " " + laterOf(as[1], bs[1])
}

// LaterSeal is, of two records of a window that was ever sealed, the one of the higher revision, and of
// one revision that of the later instant.
func LaterSeal(a, b string) string {
	as, bs := append(strings.Fields(a), "", ""), append(strings.Fields(b), "", "")
	for i := range 2 {
		if as[i] != bs[i] {
			if laterOf(as[i], bs[i]) == as[i] {
				return a
			}
			return b
		}
	}
	return max(a, b) // reopened
}

// LaterTime is the later of two times in Unix ms, which may be before 1970.
func LaterTime(a, b string) string {
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err2 != nil || err1 == nil && x > y {
		return cmp.Or(a, b)
	}
	return b
}

// laterOf is the greater of two whole numbers, as text.
func laterOf(a, b string) string {
	if len(a) > len(b) || len(a) == len(b) && a > b {
		return a
	}
	return b
}
