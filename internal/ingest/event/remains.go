package event

// Remains are the readable parts of a bad event, for finding the bad events of a member.
type Remains struct {
	User   []byte   // nil: unreadable
	Boards [][]byte // nil: unreadable, or not all valid boards
	Time   int64    // Unix ms; -1: unreadable or not allowed
}

// Remains returns the readable parts of the last decoded value, if it was bad. They are valid until the next
// Decode. They only serve to find the event again; counting does not depend on them.
func (d *Decoder) Remains(recordTime int64) Remains {
	r := Remains{Time: -1}
	user, bad := d.readUser()
	if bad != nil {
		return r
	}
	r.User = user
	if boards, bad := d.readBoards(); bad == nil {
		r.Boards = boards
	}
	if at, bad := d.readTime(recordTime); bad == nil {
		r.Time = at
	}
	return r
}
