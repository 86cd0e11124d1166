package simulate

// This file makes colliding ids. xxHash64 has no seed and is invertible, so anyone can construct ids whose
// hashes have the same prefix or are equal.

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
)

const (
	alikeIDs = "members whose hashes begin alike"
	sameIDs  = "members with one hash"
)

// The multipliers of xxHash64, from its specification.
const (
	prime1 uint64 = 11400714785074694791
	prime2 uint64 = 14029467366897019727
	prime3 uint64 = 1609587929392839161
	prime4 uint64 = 9650029242287828579
	prime5 uint64 = 2870177450012600261
)

// inverse returns the inverse of an odd number for multiplication modulo 2^64.
func inverse(n uint64) uint64 {
	x := n
	for range 6 { // each step doubles the number of correct bits; n itself has 3
		x *= 2 - n*x
	}
	return x
}

// before inverts the last steps of the hash.
func before(h uint64) uint64 {
	h ^= h >> 32
	h *= inverse(prime3)
	h ^= h>>29 ^ h>>58
	h *= inverse(prime2)
	return h ^ h>>33
}

func lane(v uint64) uint64 { return bits.RotateLeft64(v*prime2, 31) * prime1 }

// mix adds eight bytes to the hash; unmix returns the bytes that lead from one hash to another.
func mix(h, v uint64) uint64 { return bits.RotateLeft64(h^lane(v), 27)*prime1 + prime4 }

func unmix(from, to uint64) uint64 {
	k := bits.RotateLeft64((to-prime4)*inverse(prime1), -27) ^ from
	return bits.RotateLeft64(k*inverse(prime1), -31) * inverse(prime2)
}

// colliding makes n ids. With same, all have the same hash; otherwise their hashes have the first common
// bits in common.
func colliding(source *rand.Rand, n int, same bool, common int) []string {
	target, all := source.Uint64(), make([]string, 0, n)
	for len(all) < n {
		h := target
		var head, v uint64
		if same {
			head = printable(source)
			v = unmix(mix(prime5+16, head), before(h))
		} else {
			h = target ^ source.Uint64()>>common
			v = unmix(prime5+8, before(h))
		}
		if !isPrintable(v) {
			continue
		}
		id := text(v)
		if same {
			id = text(head) + id
		}
		if got := hashOf(id); got != h {
			panic(fmt.Sprintf("simulate: the hash of %q is %x, and was to be %x", id, got, h))
		}
		all = append(all, id)
	}
	return all
}

// text returns the bytes of a lane, which is little-endian.
func text(v uint64) string {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return string(b)
}

func isPrintable(v uint64) bool {
	for ; v > 0; v >>= 8 {
		if b := byte(v); b < ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

func printable(source *rand.Rand) (v uint64) {
	for range 8 {
		v = v<<8 | uint64('a'+source.IntN(26))
	}
	return v
}

// collisions holds ids of both kinds, made once.
var collisions = sync.OnceValue(func() (all [2][]string) {
	source := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		all[i] = colliding(source, 200, i == 1, 40)
	}
	return all
})

var aUser = regexp.MustCompile(`"user_id":"u(\d+)"`)

// collide gives members colliding ids.
func (d *drawer) collide(p *plan) {
	ids := collisions()[d.IntN(2)]
	mixed := d.IntN(2) == 0
	for i := range p.sendings {
		for j := range p.sendings[i].records {
			r := &p.sendings[i].records[j]
			if r.value == nil {
				continue
			}
			r.value = aUser.ReplaceAllFunc(r.value, func(b []byte) []byte {
				n, err := strconv.Atoi(string(aUser.FindSubmatch(b)[1]))
				if err != nil || mixed && n%2 == 0 {
					return b
				}
				return fmt.Appendf(nil, `"user_id":%q`, ids[n%len(ids)])
			})
		}
	}
}

// noteIDs counts the members in the logs whose hashes collide.
func (w *world) noteIDs() {
	seen := map[uint64]string{}
	first := map[uint64]string{}
	for _, p := range w.kafka.partitions {
		p.visible(0, func(r *stored) {
			user, ok := userOf(r.value)
			if !ok {
				return
			}
			h := hashOf(user)
			if other, is := seen[h]; is && other != user {
				w.count(sameIDs)
			}
			if other, is := first[h>>24]; is && hashOf(other) != h {
				w.count(alikeIDs)
			}
			seen[h], first[h>>24] = user, user
		})
	}
}
