// Package sides formats the two standings of a member in a comparison, as text and as JSON.
package sides

import (
	"slices"
	"strconv"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Side is one side as JSON. Fields are never omitted, except Fields itself; a missing value is null.
type Side struct {
	Points    *int64           `json:"points"`
	ReachedAt cli.OptionalText `json:"reached_at"` // RFC 3339 with ms, in UTC
	// Foreign is a score that this layout cannot have written; the other fields are then null. It is text
	// because it can be infinite.
	Foreign cli.OptionalText `json:"foreign_score"`
	// Fields holds the fields of a board with a rule other than the default; such a board has no points.
	Fields *fields.Values `json:"fields,omitempty"`
}

// Of returns one side; nil if the member has no standing there.
func Of(r ranking.Row) *Side {
	switch {
	case !r.There:
		return nil
	case r.Foreign:
		return &Side{Foreign: cli.OptionalText(foreign(r))}
	}
	s := &Side{Fields: fields.Of(r.Fields, r.Tuple), ReachedAt: cli.OptionalText(units.TimeMS(r.ReachedAt.UnixMilli()))}
	if s.Fields == nil {
		s.Points = &r.Points
	}
	return s
}

// Text returns one side for people, with the time in a zone.
func Text(r ranking.Row, zone *time.Location) string {
	switch {
	case !r.There:
		return "-"
	case r.Foreign:
		return foreign(r) + ", which is no score of this layout"
	}
	return fields.Text(r.Fields, r.Tuple, r.Points) + " at " + r.ReachedAt.In(zone).Format("2006-01-02 15:04:05.000")
}

func foreign(r ranking.Row) string { return strconv.FormatFloat(r.Score, 'g', -1, 64) }

// Table returns the differing standings for people, with times in a zone. It has a column for names if any
// member has one.
func Table(all []ranking.Difference, a, b string, zone *time.Location) *terminal.Table {
	heads := []string{"WINDOW", "MEMBER", a, b}
	named := slices.ContainsFunc(all, func(d ranking.Difference) bool { return d.Called != "" })
	if named {
		heads = slices.Insert(heads, 2, "NAME")
	}
	t := terminal.NewTable(heads...)
	for i := range all {
		d := &all[i]
		row := []string{d.Listing(), terminal.Plain(d.Member), Text(d.A, zone), Text(d.B, zone)}
		if named {
			row = slices.Insert(row, 2, terminal.Plain(d.Called))
		}
		t.Add(row...)
	}
	return t
}
