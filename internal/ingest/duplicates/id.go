package duplicates

import (
	"crypto/sha256"
	"encoding/binary"
)

// ID stands for an event's event_id and user_id: 128 bits of a SHA-256 of both. Never zero.
//
// Whoever publishes chooses the ids, and a collision drops somebody's event. So it has to be a
// hash for which nobody finds an event that collides with another's, although it can't have a
// secret key: a replay, a rebuild and a successor must find what was found at first. Of
// xxHash64, which orders sweeps, such ids can be worked out in no time.
type ID struct{ a, b uint64 }

// Longest is how long each of the ids may be, in bytes.
const Longest = 256

// Of is the ID of an event, by ids of 1 to Longest bytes. The length of the first stands before
// it, so that a+bc isn't ab+c.
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
