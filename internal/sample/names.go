package sample

import "strconv"

// names gives every rank a member's id, none twice.
//
// A few members get names that can be told apart at a glance; many get numbers.
// Either way the ranks are scattered, so that the most active aren't neighbours.
type names struct {
	space  uint64 // ids are drawn from [0, space)
	step   uint64 // coprime to space: rank * step + offset mod space is one-to-one
	offset uint64
	spoken bool
	digits int
}

// spokenMembers is up to how many members have names that can be spoken.
const spokenMembers = 5000

var (
	consonants = []byte("bdklmnrstv")
	vowels     = []byte("aeiou")
	syllables  = uint64(len(consonants) * len(vowels))
)

func newNames(members int, seed uint64) names {
	n := names{space: uint64(members), spoken: members <= spokenMembers, digits: 6}
	if n.spoken {
		n.space = syllables * syllables * syllables
	}
	for limit := 1_000_000; members > limit; limit *= 10 {
		n.digits++
	}
	// About the golden ratio of the space: neighbours land far apart.
	n.step = max(uint64(float64(n.space)*0.6180339887498949), 1)
	for gcd(n.step, n.space) != 1 {
		n.step++
	}
	n.offset = seed % n.space
	return n
}

func (n *names) append(buf []byte, rank int) []byte {
	id := (uint64(rank-1)*n.step + n.offset) % n.space
	if n.spoken {
		for i := range 3 {
			syllable := id % syllables
			c := consonants[syllable%uint64(len(consonants))]
			if i == 0 {
				c -= 'a' - 'A'
			}
			buf = append(buf, c, vowels[syllable/uint64(len(consonants))])
			id /= syllables
		}
		return buf
	}
	buf = append(buf, "player-"...)
	id++
	width := 1
	for m := id; m >= 10; m /= 10 {
		width++
	}
	for ; width < n.digits; width++ {
		buf = append(buf, '0')
	}
	return strconv.AppendUint(buf, id, 10)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
