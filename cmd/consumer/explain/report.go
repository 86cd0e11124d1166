package explain

// The answer as JSON. Its JSON is an interface: fields are never omitted or renamed, and a missing value is
// null.

import (
	"fmt"

	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/units"
)

type report struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Start    string `json:"start"` // RFC 3339 with ms, in UTC, like all times here
	End      string `json:"end"`   // exclusive
	TimeZone string `json:"time_zone"`
	TickMS   int64  `json:"tick_ms"` // the precision of reached_at
	Member   string `json:"member"`
	Hash     string `json:"hash"`            // of the member; sweeps proceed in its order
	Shard    *int   `json:"shard,omitempty"` // the member's shard, if there are several

	Agree *bool  `json:"agree"` // null: unknown
	Notes []note `json:"notes"`

	Rank  *int64    `json:"rank"`     // null if the member has no standing in Redis
	Redis *standing `json:"in_redis"` // null if the member has no standing in Redis
	Log   *standing `json:"in_log"`   // the standing that the counted events make; null if there are none
	// Banned is hidden or erased; null if the member is neither.
	Banned *string `json:"banned"`

	Counts     counts      `json:"counts"`
	Unread     int64       `json:"unread"` // records of this time that cannot be read well enough to tell whose they are
	Events     []listed    `json:"events"` // the latest events, by time
	LeftOut    int64       `json:"left_out"`
	Partitions []partition `json:"partitions"`
}

type standing struct {
	Points    *int64         `json:"points"` // null on a board with its own fields
	ReachedAt string         `json:"reached_at"`
	Fields    *fields.Values `json:"fields,omitempty"`
}

// listed is one event.
type listed struct {
	Partition  string  `json:"partition"`
	Offset     int64   `json:"offset"`
	RecordTime *string `json:"record_time"`
	Time       *string `json:"time"` // null if it cannot be read
	EventID    *string `json:"event_id"`
	// Result is counted, late, final, early, duplicate, dead_letter, not_applied, before_start or erased.
	Result  string         `json:"result"`
	Reason  *string        `json:"reason"` // of a dead letter
	Message *string        `json:"message"`
	Points  *int64         `json:"points"` // what the event adds, or its value; null if it cannot be read, and on a board with its own fields
	Fields  *fields.Values `json:"fields,omitempty"`
}

// partition describes how far a partition was read, and how far Redis has counted it.
type partition struct {
	Partition string  `json:"partition"`
	Position  *string `json:"position"` // null if the ledger lacks the partition
	From      *int64  `json:"from"`     // the first offset that can hold an event of the window; null if the partition cannot be read
	LogEnd    *int64  `json:"log_end"`
	Gone      bool    `json:"gone"` // events of the window may have been deleted before From
}

func (a *answer) report(zone string) *report {
	a.latest()
	w, h := a.window, a.held
	r := &report{
		Board: a.board, Period: string(w.Period), Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End), TimeZone: zone,
		TickMS: a.layout.Tick, Member: a.member, Hash: fmt.Sprintf("%016x", a.hash), Agree: a.agree, Notes: append([]note{}, a.notes...),
		Counts: a.counts, Unread: a.unread, LeftOut: a.leftOut(), Events: []listed{}, Partitions: []partition{},
	}
	if h.of > 1 {
		r.Shard = &h.shard
	}
	if h.standing != nil {
		r.Rank = &h.standing.Rank
	}
	r.Redis = a.standingJSON(h.standing)
	if st, ok := a.standing(&a.total); ok {
		r.Log = a.standingJSON(st)
	}
	if how := h.banned(); how != "" {
		r.Banned = &how
	}
	for i := range a.entries {
		r.Events = append(r.Events, a.listed(&a.entries[i]))
	}
	for _, s := range a.sources {
		p := partition{Partition: s.String(), Position: orNull(s.text), Gone: s.gone}
		if s.missing == "" {
			p.From, p.LogEnd = &s.from, &s.log.End
		}
		r.Partitions = append(r.Partitions, p)
	}
	return r
}

// fields returns the fields of a board with a rule of its own; none for the default rule.
func (a *account) fields() codec.Fields {
	if !a.ruled {
		return codec.Fields{}
	}
	return a.rule.Fields
}

func (a *account) standingJSON(st *ranking.Standing) *standing {
	if st == nil {
		return nil
	}
	s := &standing{ReachedAt: units.TimeMS(st.ReachedAt.UnixMilli()), Fields: fields.Of(a.fields(), st.Tuple)}
	if s.Fields == nil {
		s.Points = &st.Points
	}
	return s
}

func (a *account) listed(e *entry) listed {
	j := listed{Partition: e.partition.String(), Offset: e.offset, Result: string(e.result), EventID: orNull(e.id), Reason: orNull(e.reason), Message: orNull(e.message)}
	if e.recorded > 0 {
		j.RecordTime = new(units.TimeMS(e.recorded))
	}
	if e.time >= 0 {
		j.Time = new(units.TimeMS(e.time))
	}
	if e.readable {
		if j.Fields = fields.Of(a.fields(), e.tuple); j.Fields == nil {
			j.Points = &e.tuple[0]
		}
	}
	return j
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
