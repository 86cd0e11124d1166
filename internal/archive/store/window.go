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

// Window is a copy of a window. All times have millisecond precision.
type Window struct {
	ID     int64 // assigned by the archive, never reused
	Board  string
	Period string
	Name   string // 2026-W47
	Start  time.Time
	End    time.Time // exclusive

	// Revision is the revision of a final window, from 1. 0 is a backup: a copy of an open window.
	Revision int64
	// AsOf is when a final window was sealed, or when the backup began. Every row of a backup includes the events
	// counted at AsOf, and may include events counted while the backup was read.
	AsOf     time.Time
	SealedAt time.Time // zero for a backup

	Fields []codec.Field // the board's fields, most significant first; nil: points, by the default rule
	Zone   string        // IANA
	Tick   time.Duration // whole ms; a row's time is the first ms of its tick
	// MaxPoints is the maximum points of a member; 0 if the board has fields.
	MaxPoints int64
	// Ledger has the position of each partition at AsOf.
	Ledger map[string]string
	// ReopenedWhy is why the previous revision was reopened; empty if there was none, or no reason was given.
	ReopenedWhy string

	// Incomplete are the partitions from which records of the window were deleted before they could count.
	Incomplete []string

	// Members is the number of rows in a complete copy that were shown when it was taken. Hidden is the number of
	// members banned then. Both exclude rows Erased since. For a backup, Finish sets them.
	Members, Hidden, Erased int64
	Written                 int64 // number of rows written, of all three kinds
	Checksum                Checksum
	State                   State
}

// State is the state of a copy.
type State string

// States of a copy. Only the leader sees copies that are not Whole.
const (
	Unfinished State = "writing"
	Whole      State = "whole"
	Removing   State = "removing" // its rows are being removed
)

// Places returns the number of rows of a complete copy.
func (w *Window) Places() int64 { return w.Members + w.Hidden + w.Erased }

// Final reports whether this is a copy of a final window.
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
	case w.MaxPoints < 0 || w.MaxPoints > 0 && w.Fields != nil:
		return bad("the most points")
	case w.Tick < time.Millisecond || w.Tick%time.Millisecond != 0:
		return bad(fmt.Sprintf("the tick %v", w.Tick))
	case w.Members < 0 || w.Hidden < 0 || w.Erased != 0:
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

// storable reports whether every database can store a text.
func storable(text string) bool {
	return utf8.ValidString(text) && !slices.Contains([]byte(text), 0)
}

// continues reports whether an unfinished copy has rows of the same standings as o: both have the same seal and
// the same description. The copy of an open window always starts again.
func (w *Window) continues(o *Window) bool {
	same := func(a, b time.Time) bool { return a.UnixMilli() == b.UnixMilli() }
	return w.Final() && w.Revision == o.Revision && w.Members == o.Members && w.Hidden == o.Hidden && same(w.SealedAt, o.SealedAt) &&
		same(w.Start, o.Start) && same(w.End, o.End) && w.Zone == o.Zone && w.Tick == o.Tick &&
		slices.Equal(w.Fields, o.Fields) && maps.Equal(w.Ledger, o.Ledger)
}

// names returns the fields' names; nil for the default rule.
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

// fieldText is a field in the column fields.
type fieldText struct {
	Name   string `json:"name"`
	Min    int64  `json:"min"`
	Max    int64  `json:"max"`
	Better string `json:"better"` // most or fewest
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

// described lists the columns that describe a copy. The other columns record its progress.
const (
	described     = `board, period, name, revision, start_at, end_at, as_of, sealed_at, reopened_why, fields, max_points, zone, tick_ms, ledger, incomplete`
	windowColumns = `id, ` + described + `, members, hidden, erased, rows_written, checksum, state`
)

// values returns the values of described in the database's types.
func (s *Store) values(w *Window) ([]any, error) {
	fields, err := fieldsText(w.Fields)
	if err != nil {
		return nil, err
	}
	if w.Ledger == nil {
		w.Ledger = map[string]string{}
	}
	counted, err := json.Marshal(w.Ledger)
	if err != nil {
		return nil, err
	}
	incomplete, err := json.Marshal(w.Incomplete)
	if err != nil {
		return nil, err
	}
	at := func(t time.Time) any { return s.dialect.at(t.UnixMilli()) }
	unless := func(none bool, value any) any {
		if none {
			return nil
		}
		return value
	}
	return []any{
		w.Board, w.Period, w.Name, w.Revision, at(w.Start), at(w.End), at(w.AsOf), unless(!w.Final(), at(w.SealedAt)),
		unless(w.ReopenedWhy == "", w.ReopenedWhy), fields, unless(w.MaxPoints == 0, w.MaxPoints), w.Zone, w.Tick.Milliseconds(),
		string(counted), unless(len(w.Incomplete) == 0, string(incomplete)),
	}, nil
}

// scanWindow reads windowColumns.
func scanWindow(scan func(...any) error) (*Window, error) {
	var w Window
	var start, end, asOf, sealed instant
	var most sql.NullInt64
	var fields, why, incomplete sql.NullString
	var tick int64
	var counted, sum string
	if err := scan(&w.ID, &w.Board, &w.Period, &w.Name, &w.Revision, &start, &end, &asOf, &sealed, &why, &fields, &most, &w.Zone, &tick, &counted, &incomplete,
		&w.Members, &w.Hidden, &w.Erased, &w.Written, &sum, &w.State); err != nil {
		return nil, found(err)
	}
	w.Start, w.End, w.AsOf, w.SealedAt = start.time(), end.time(), asOf.time(), sealed.time()
	w.MaxPoints, w.ReopenedWhy, w.Tick = most.Int64, why.String, time.Duration(tick)*time.Millisecond
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

// time returns the instant in UTC; the zero time for null.
func (i instant) time() time.Time {
	if i.null {
		return time.Time{}
	}
	return time.UnixMilli(i.ms).UTC()
}
