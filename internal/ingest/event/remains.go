package event

// Remains is what can be read of a bad event, for whoever looks for those of a member.
type Remains struct {
	User   []byte   // nil: it can't be read
	Boards [][]byte // nil: they can't be read, or aren't all boards
	Time   int64    // Unix ms; -1: it can't be read, or can't be
}

// Remains are those of the value that was decoded last, if it was bad. They hold until the next
// Decode. Nothing rests on them but that the event can be found again.
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
