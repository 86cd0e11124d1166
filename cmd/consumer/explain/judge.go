package explain

// What one record comes to for the member, by one set of rules: the consumer's own decoder,
// windows and duplicates, in the order in which a worker asks them.

import (
	"bytes"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	boardrules "github.com/standings/standings/internal/rules"
)

// question is what is asked: which of a member's events a standing is made of.
type question struct {
	board  string
	period periods.Rule
	window periods.Window
	// settled is where windows of calendars start and end; nil: as the calendars here have it.
	settled *fold.Borders
	member  string
	hash    uint64 // of member
}

// result is what became of an event.
type result string

const (
	counted    result = "counted"
	late       result = "late"         // the window took no more events
	final      result = "final"        // it came after the window was made final
	early      result = "early"        // before the first window of the period
	duplicate  result = "duplicate"    // of one just before it
	deadLetter result = "dead_letter"  // it is none that counts, or was refused
	notApplied result = "not_applied"  // behind the ledger: it is still to come
	notBegun   result = "before_start" // the boards began at a later offset
	erased     result = "erased"       // nothing of the member is kept
)

// entry is an event of the member that is, or would be, of the board and window.
type entry struct {
	partition ledger.Partition
	offset    int64
	recorded  int64 // the record's time, Unix ms; none at or below 0
	time      int64 // the event's; -1 where it can't be read
	id        string
	result    result
	reason    string // of a dead letter
	message   string
	tuple     codec.Tuple // what it changes, or has; of a dead letter none
	readable  bool        // tuple is there
}

// when is what entries are ordered by.
func (e *entry) when() int64 {
	if e.time >= 0 {
		return e.time
	}
	return e.recorded
}

// whose says to whom a record belongs.
type whose int

const (
	others whose = iota // another member's, board's or window's; or nothing
	mine
	nobodys // it is of the window's time and can't be read so far as to say
)

// judge reads records by one set of rules. It is given those of a partition in the order of
// their offsets, after begin.
type judge struct {
	*question
	decoder *event.Decoder
	boards  boardrules.Boards
	windows fold.Rules
	known   *duplicates.Set // of the member's events; nil: repeats count
	event   event.Event
}

func newJudge(q *question, events event.Rules, windows fold.Rules, lookBack int64) *judge {
	j := &judge{question: q, decoder: event.NewDecoder(events), boards: events.Others, windows: windows.By(q.settled)}
	if lookBack > 0 {
		j.known = duplicates.New(lookBack)
	}
	return j
}

// lookBack is how many offsets before an event duplicates of it are looked for.
func (j *judge) lookBack() int64 {
	if j.known == nil {
		return 0
	}
	return j.known.Records()
}

// begin forgets the partition before: what comes next is at an offset or later.
func (j *judge) begin(offset int64) {
	if j.known != nil {
		j.known.Begin(offset)
	}
}

// judge says what a record comes to if all before it is applied and nothing refuses it.
func (j *judge) judge(rec *recordbatch.Record) (entry, whose) {
	e := entry{offset: rec.Offset, recorded: rec.Time, time: -1}
	switch {
	case rec.Oversize > 0:
		return e, j.unread(rec)
	case rec.Value == nil:
		return e, others
	}
	bad := j.decode(rec)
	if bad != nil {
		return j.bad(e, rec, bad)
	}
	if string(j.event.User) != j.member {
		return e, others
	}
	e.id, e.time = string(j.decoder.ID()), j.event.Time
	taking, left, err := j.windows.Windows(j.event.Boards, j.event.Time, rec.Time)
	if err != nil {
		return j.bad(e, rec, &event.Bad{Reason: event.BadTime, Message: err.Error()})
	}
	repeats := j.repeats(rec.Offset)
	at := indexOf(j.event.Boards, j.board)
	if at < 0 || !j.concerns(e.time) {
		return e, others
	}
	e.tuple, e.readable = j.tuple(at), true
	switch {
	case repeats:
		e.result = duplicate
	case holds(taking, j.window):
		e.result = counted
	case left == fold.Early, e.time < j.window.Start:
		e.result = early
	default:
		e.result = late
	}
	return e, mine
}

func (j *judge) decode(rec *recordbatch.Record) *event.Bad {
	var h event.Headers
	rec.EachHeader(h.Note)
	return j.decoder.DecodeWith(&h, rec.Value, rec.Time, &j.event)
}

// repeats reports whether the event that was decoded last is a duplicate, and notes it.
func (j *judge) repeats(offset int64) bool {
	id := j.decoder.ID()
	if j.known == nil || len(id) == 0 {
		return false
	}
	key := duplicates.Of(id, j.event.User)
	found := j.known.Has(offset, key)
	j.known.Add(offset, key)
	return found
}

// tuple is what the event that was decoded last has for one of its boards.
func (j *judge) tuple(board int) codec.Tuple {
	if j.event.Tuples == nil || j.boards.Of(j.board) == nil {
		return codec.Tuple{j.event.Points}
	}
	return j.event.Tuples[board]
}

// bad is a dead letter, as far as it can be told whose it is. A record that can't be read as an
// event is taken for the member's if its key is the member's id, as producers have it.
func (j *judge) bad(e entry, rec *recordbatch.Record, bad *event.Bad) (entry, whose) {
	r := j.decoder.Remains(rec.Time)
	e.id, e.time = string(j.decoder.ID()), r.Time
	e.result, e.reason, e.message = deadLetter, string(bad.Reason), bad.Message
	switch {
	case r.User == nil && string(rec.Key) == j.member:
		e.message += " (the key is the member's)"
	case r.User == nil:
		return e, j.unread(rec)
	case string(r.User) != j.member, r.Boards != nil && indexOf(r.Boards, j.board) < 0:
		return e, others
	}
	if !j.concerns(e.when()) {
		return e, others
	}
	return e, mine
}

// unread is whose a record is of which nobody can say. Of a time long before or after the window
// it doesn't matter.
func (j *judge) unread(rec *recordbatch.Record) whose {
	if j.concerns(rec.Time) {
		return nobodys
	}
	return others
}

// concerns reports whether an event of a time is of the window; or of no window of the period,
// if there is none on that side of this one.
func (j *judge) concerns(at int64) bool {
	if at >= j.window.Start && at < j.window.End {
		return true
	}
	_, place, err := j.period.At(at)
	switch {
	case err != nil:
		return false
	case place == periods.Before:
		first, ok := j.period.First()
		return ok && first == j.window
	}
	return place == periods.After // a season has one window
}

func holds(all []periods.Window, w periods.Window) bool {
	for _, one := range all {
		if one == w {
			return true
		}
	}
	return false
}

func indexOf(boards [][]byte, name string) int {
	for i, b := range boards {
		if bytes.Equal(b, []byte(name)) {
			return i
		}
	}
	return -1
}
