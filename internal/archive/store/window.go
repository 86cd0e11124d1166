package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/standings/standings/internal/codec"
)

// Window is a copy of a window. All times are to the millisecond.
type Window struct {
	ID     int64 // given by the archive, and never again
	Board  string
	Period string
	Name   string // 2026-W47
	Start  time.Time
	End    time.Time // the first instant after it

	// Revision is that of a final window, from 1. 0 is a backup of a window that takes events still.
	Revision int64
	// AsOf is when the copy was taken: of a backup, when it was begun to be read. What counted then is in
	// every row, and whoever was in the window is in the copy.
	AsOf time.Time
	// Until is when the last row of a backup was read: a row may have what counted up to then. Else zero.
	Until    time.Time
	SealedAt time.Time // of a final window; else zero
	TakenBy  int64     // the token of the leader that took it

	Fields []codec.Field // what the board counts, most significant first; nil: points, by the default rule
	Zone   string        // IANA
	Tick   time.Duration // whole ms: a row's time is the first ms of its tick
	// MaxPoints is how many points a member could have, by the default rule; 0: not known.
	MaxPoints int64
	// Ledger has the position of each partition: at the instant of the seal, or of AsOf.
	Ledger map[string]string
	// ReopenedWhy is why the revision before was reopened; empty if there was none, or no reason.
	ReopenedWhy string

	// Incomplete are the partitions of which records of the window were deleted before they could count.
	Incomplete []string

	Members  int64 // how many rows it has once it is whole
	Written  int64 // how many it has, from rank 1 on
	Checksum Checksum
	State    State
}

// State is how far a copy is.
type State string

// States of a copy. All but whole ones are nobody's but the leader's.
const (
	Unfinished State = "writing"
	Whole      State = "whole"
	Removing   State = "removing" // its rows are being removed
)

// Final reports whether it is a copy of a final window.
func (w *Window) Final() bool { return w.Revision > 0 }

func (w *Window) String() string {
	text := fmt.Sprintf("%s:%s:%s", w.Board, w.Period, w.Name)
	if w.Final() {
		return fmt.Sprintf("%s, revision %d", text, w.Revision)
	}
	return text + ", a backup as of " + w.AsOf.UTC().Format(time.RFC3339Nano)
}

func (w *Window) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s of %s", ErrInvalid, what, w) }
	for _, text := range []string{w.Board, w.Period, w.Name, w.Zone} {
		if text == "" || len(text) > 512 || !storable(text) {
			return bad(fmt.Sprintf("%q as a name", text))
		}
	}
	instants := []time.Time{w.Start, w.End, w.AsOf}
	if w.Final() {
		instants = append(instants, w.SealedAt)
	}
	if !w.Until.IsZero() {
		instants = append(instants, w.Until)
	}
	for _, t := range instants {
		if ms := t.UnixMilli(); ms < 0 || ms > maxTime {
			return bad(fmt.Sprintf("the time %v", t))
		}
	}
	switch {
	case !w.Start.Before(w.End):
		return bad("an end that isn't after the start")
	case w.Revision < 0:
		return bad("the revision")
	case !w.Final() && !w.SealedAt.IsZero():
		return bad("a seal")
	case !w.Until.IsZero() && (w.Final() || w.Until.Before(w.AsOf)):
		return bad(fmt.Sprintf("the end of reading %v", w.Until))
	case w.MaxPoints < 0 || w.MaxPoints > 0 && w.Fields != nil:
		return bad("the most points")
	case w.Tick < time.Millisecond || w.Tick%time.Millisecond != 0:
		return bad(fmt.Sprintf("the tick %v", w.Tick))
	case w.Members < 0:
		return bad("the number of members")
	case !storable(w.ReopenedWhy):
		return bad("the reason")
	}
	for partition, position := range w.Ledger {
		if !storable(partition) || !storable(position) {
			return bad("the ledger")
		}
	}
	if !storable(strings.Join(w.Incomplete, "")) {
		return bad("the incomplete partitions")
	}
	if w.Fields != nil {
		if _, err := codec.NewFields(w.Fields...); err != nil {
			return bad(err.Error())
		}
	}
	return nil
}

// storable reports whether every database takes a text.
func storable(text string) bool {
	return utf8.ValidString(text) && !slices.Contains([]byte(text), 0)
}

// sameContents reports whether a copy that was begun is one of the same standings as another: of
// the same seal, or taken at the same instant, with as many members in the same order.
func (w *Window) sameContents(o *Window) bool {
	same := func(a, b time.Time) bool { return a.UnixMilli() == b.UnixMilli() }
	return w.Revision == o.Revision && w.Members == o.Members &&
		(w.Final() && same(w.SealedAt, o.SealedAt) || !w.Final() && same(w.AsOf, o.AsOf)) &&
		same(w.Start, o.Start) && same(w.End, o.End) && w.Zone == o.Zone && w.Tick == o.Tick &&
		slices.Equal(w.Fields, o.Fields) && maps.Equal(w.Ledger, o.Ledger)
}

// names are those of the fields; nil by the default rule.
func (w *Window) names() []string {
	if w.Fields == nil {
		return nil
	}
	all := make([]string, len(w.Fields))
	for i, f := range w.Fields {
		all[i] = f.Name
	}
	return all
}

// fieldText is a field as the column has it.
type fieldText struct {
	Name   string `json:"name"`
	Min    int64  `json:"min"`
	Max    int64  `json:"max"`
	Better string `json:"better"` // most, fewest
}

func fieldsText(fields []codec.Field) (any, error) {
	if fields == nil {
		return nil, nil
	}
	all := make([]fieldText, len(fields))
	for i, f := range fields {
		all[i] = fieldText{Name: f.Name, Max: f.Max, Better: "most"}
		if f.Signed {
			all[i].Min = -f.Max
		}
		if f.Fewest {
			all[i].Better = "fewest"
		}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

func parseFields(text sql.NullString) ([]codec.Field, error) {
	if !text.Valid {
		return nil, nil
	}
	var all []fieldText
	if err := json.Unmarshal([]byte(text.String), &all); err != nil {
		return nil, fmt.Errorf("a window's fields in the archive: %w", err)
	}
	fields := make([]codec.Field, len(all))
	for i, f := range all {
		fields[i] = codec.Field{Name: f.Name, Max: f.Max, Signed: f.Min < 0, Fewest: f.Better == "fewest"}
	}
	return fields, nil
}

const windowColumns = `id, board, period, name, start_at, end_at, revision, as_of, sealed_at, taken_by, fields, zone, tick_ms,
	ledger, incomplete, reopened_why, members, rows_written, checksum, state, read_until, max_points`

// scanWindow reads windowColumns.
func scanWindow(scan func(...any) error) (*Window, error) {
	var w Window
	var start, end, asOf, sealed, until instant
	var most sql.NullInt64
	var fields, why, incomplete sql.NullString
	var tick int64
	var counted, sum string
	if err := scan(&w.ID, &w.Board, &w.Period, &w.Name, &start, &end, &w.Revision, &asOf, &sealed, &w.TakenBy, &fields, &w.Zone,
		&tick, &counted, &incomplete, &why, &w.Members, &w.Written, &sum, &w.State, &until, &most); err != nil {
		return nil, found(err)
	}
	w.Start, w.End, w.AsOf, w.SealedAt, w.Until = start.time(), end.time(), asOf.time(), sealed.time(), until.time()
	w.MaxPoints = most.Int64
	w.Tick, w.ReopenedWhy = time.Duration(tick)*time.Millisecond, why.String
	var err error
	if w.Fields, err = parseFields(fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(counted), &w.Ledger); err != nil {
		return nil, fmt.Errorf("a window's ledger in the archive: %w", err)
	}
	if incomplete.Valid {
		if err := json.Unmarshal([]byte(incomplete.String), &w.Incomplete); err != nil {
			return nil, fmt.Errorf("a window's incomplete partitions in the archive: %w", err)
		}
	}
	if w.Checksum, err = parseChecksum(sum); err != nil {
		return nil, err
	}
	return &w, nil
}

// time is the instant in UTC; the zero time where there is none.
func (i instant) time() time.Time {
	if i.null {
		return time.Time{}
	}
	return time.UnixMilli(i.ms).UTC()
}
