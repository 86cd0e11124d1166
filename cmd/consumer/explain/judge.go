package explain

// This file judges single records for the member under the configured rules. It uses the consumer's decoder,
// windows and duplicates, in the order in which a worker applies them.

import (
	"slices"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/periods"
	boardrules "github.com/standings/standings/internal/rules"
)

// question identifies the standing to explain.
type question struct {
	board  string
	period periods.Rule
	window periods.Window
	// settled holds the bounds of calendar windows that are settled in Redis; nil: the bounds from this
	// program's calendar.
	settled *fold.Borders
	member  string
	hash    uint64 // of member
}

// result is the outcome of an event.
type result string

const (
	counted    result = "counted"
	late       result = "late"         // the window no longer accepted events
	final      result = "final"        // the event arrived after the window was made final
	early      result = "early"        // before the first window of the period
	duplicate  result = "duplicate"    // a duplicate of a preceding event
	deadLetter result = "dead_letter"  // invalid or refused
	notApplied result = "not_applied"  // not yet counted by the ledger
	notBegun   result = "before_start" // before the offset at which the boards began
	erased     result = "erased"       // the member is erased
)

// entry is an event of the member that belongs, or would belong, to the board and window.
type entry struct {
	Partition string           `json:"partition"`
	Offset    int64            `json:"offset"`
	Recorded  cli.OptionalTime `json:"record_time"`
	Time      cli.OptionalTime `json:"time"` // null if it cannot be read
	ID        cli.OptionalText `json:"event_id"`
	Result    result           `json:"result"`
	Reason    cli.OptionalText `json:"reason"` // of a dead letter
	Message   cli.OptionalText `json:"message"`
	// Points is what the event adds, or its value; null if it cannot be read, and on a board with its own fields.
	Points *int64         `json:"points"`
	Fields *fields.Values `json:"fields,omitempty"`

	tuple    codec.Tuple // what the event changes, or its tuple; unset for a dead letter
	readable bool        // whether tuple is set
}

// when returns the time by which entries are ordered.
func (e *entry) when() int64 {
	if e.Time >= 0 {
		return int64(e.Time)
	}
	return int64(e.Recorded)
}

// whose tells whether a record belongs to the member.
type whose int

const (
	others whose = iota // another member, board or window, or no event
	mine
	nobodys // within the window's time, but too damaged to tell whose it is
)

// judge judges records under the configured rules. After begin, it needs the records of one partition in offset
// order.
type judge struct {
	*question
	decoder *event.Decoder
	boards  boardrules.Boards
	windows fold.Rules
	known   *duplicates.Set // ids of the member's events; nil if duplicates count
	event   event.Event
}

func newJudge(q *question, c *rulebook.Counting) *judge {
	j := &judge{question: q, decoder: event.NewDecoder(c.Events), boards: c.Events.Others, windows: c.Windows.By(q.settled)}
	if c.Duplicates > 0 {
		j.known = duplicates.New(c.Duplicates)
	}
	return j
}

// begin forgets the previous partition; the next record is at offset or later.
func (j *judge) begin(offset int64) {
	if j.known != nil {
		j.known.Begin(offset)
	}
}

// judge returns the outcome of a record, assuming that all earlier records are applied and no script
// refuses it.
func (j *judge) judge(rec *recordbatch.Record) (entry, whose) {
	e := entry{Offset: rec.Offset, Recorded: cli.OptionalTime(rec.Time), Time: -1}
	if rec.Time <= 0 {
		e.Recorded = -1
	}
	switch {
	case rec.Oversize > 0:
		return e, j.unread(rec)
	case rec.Value == nil:
		return e, others
	}
	var h event.Headers
	rec.EachHeader(h.Note)
	if bad := j.decoder.DecodeWith(&h, rec.Value, rec.Time, &j.event); bad != nil {
		return j.bad(e, rec, bad)
	}
	if string(j.event.User) != j.member {
		return e, others
	}
	e.ID, e.Time = cli.OptionalText(j.decoder.ID()), cli.OptionalTime(j.event.Time)
	taking, left, err := j.windows.Windows(j.event.Boards, j.event.Time, rec.Time)
	if err != nil {
		return j.bad(e, rec, &event.Bad{Reason: event.BadTime, Message: err.Error()})
	}
	repeats := j.repeats(rec.Offset)
	at := indexOf(j.event.Boards, j.board)
	if at < 0 || !j.concerns(j.event.Time) {
		return e, others
	}
	e.tuple, e.readable = j.tuple(at), true
	switch {
	case repeats:
		e.Result = duplicate
	case slices.Contains(taking, j.window):
		e.Result = counted
	case left == fold.Early, j.event.Time < j.window.Start:
		e.Result = early
	default:
		e.Result = late
	}
	return e, mine
}

// repeats reports whether the last decoded event is a duplicate, and records its id.
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

// tuple returns the tuple of the last decoded event for one of its boards.
func (j *judge) tuple(board int) codec.Tuple {
	if j.event.Tuples == nil || j.boards.Of(j.board) == nil {
		return codec.Tuple{j.event.Points}
	}
	return j.event.Tuples[board]
}

// bad returns the entry for a dead letter, if it can belong to the member. A record that cannot be parsed
// belongs to the member if its key is the member's id, because producers use the id as key.
func (j *judge) bad(e entry, rec *recordbatch.Record, bad *event.Bad) (entry, whose) {
	r := j.decoder.Remains(rec.Time)
	e.ID, e.Time = cli.OptionalText(j.decoder.ID()), cli.OptionalTime(r.Time)
	e.Result, e.Reason, e.Message = deadLetter, cli.OptionalText(bad.Reason), cli.OptionalText(bad.Message)
	switch {
	case r.User == nil && string(rec.Key) == j.member:
		e.Message += " (the key is the member's)"
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

// unread classifies a record whose member cannot be read. It matters only if its time is within the window.
func (j *judge) unread(rec *recordbatch.Record) whose {
	if j.concerns(rec.Time) {
		return nobodys
	}
	return others
}

// concerns reports whether an event with this time belongs to the window. A time before all windows of the
// period belongs to the first window, and one after all windows to the last.
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
	return place == periods.After // only a season ends, and it has one window
}

func indexOf(boards [][]byte, name string) int {
	return slices.IndexFunc(boards, func(b []byte) bool { return string(b) == name })
}
