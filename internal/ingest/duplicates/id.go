package duplicates

import (
	"crypto/sha256"
	"encoding/binary"
)

// ID represents an event's event_id and user_id: 128 bits of a SHA-256 of both. It is never zero.
//
// Producers choose the ids, and a collision drops an event. The hash must therefore be one for which no
// producer can find an event that collides with another's. It cannot have a secret key, because a replay, a
// rebuild and a later owner must find the same duplicates as the first reading. For xxHash64, which orders
// sweeps, colliding ids can be computed quickly.
type ID struct{ a, b uint64 }

// Longest is the maximum length of each of the two ids, in bytes.
const Longest = 256

// Of returns the ID of an event. Each id has 1 to Longest bytes. The length of the first precedes it, so that
// a+bc and ab+c differ.
func Of(eventID, userID []byte) ID {
	var text [2 + 2*Longest]byte
	binary.LittleEndian.PutUint16(text[:], uint16(len(eventID)))
	n := 2 + copy(text[2:2+Longest], eventID)
	n += copy(text[n:], userID)
	sum := sha256.Sum256(text[:n])
	id := ID{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	if id == (ID{}) {
		id.b = 1
	}
	return id
}
