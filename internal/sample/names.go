package sample

import "strconv"

// names maps every rank to a unique member id.
//
// If there are few members, they have names that are easy to distinguish; many members have numbers. In both cases
// the ranks are scattered, so that the most active members are not neighbours.
type names struct {
	space  uint64 // ids are in [0, space)
	step   uint64 // coprime to space, so that rank * step + offset mod space is one-to-one
	offset uint64
	spoken bool
	digits int
}

// spokenMembers is the maximum number of members for which names are pronounceable.
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
	// About the golden ratio of the space: adjacent ranks are far apart.
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
