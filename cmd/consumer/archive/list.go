package archive

// This file writes the list as text and as JSON.

import (
	"context"
	"strconv"
	"strings"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

// listReport is the JSON of list; docs/json.md describes its fields.
type listReport struct {
	Copies []copyReport `json:"copies"`
}

type copyReport struct {
	Board       string  `json:"board"`
	Period      string  `json:"period"`
	Window      string  `json:"window"`
	Start       string  `json:"start"`
	End         string  `json:"end"`
	Final       bool    `json:"final"`    // false: the copy is a backup
	Revision    *int64  `json:"revision"` // of a final window, from 1; null for a backup
	Members     int64   `json:"members"`  // shown when the copy was taken
	Hidden      int64   `json:"hidden"`   // banned when the copy was taken
	Erased      int64   `json:"erased"`   // members whose rows were erased since
	AsOf        string  `json:"as_of"`    // when the copy was taken
	SealedAt    *string `json:"sealed_at"`
	ReopenedWhy *string `json:"reopened_why"` // why the previous revision was reopened
	Checksum    string  `json:"checksum"`
}

func reportOf(w *store.Window) copyReport {
	r := copyReport{
		Board: w.Board, Period: w.Period, Window: w.Name, Start: units.TimeMS(w.Start.UnixMilli()), End: units.TimeMS(w.End.UnixMilli()),
		Final: w.Final(), Members: w.Members, Hidden: w.Hidden, Erased: w.Erased, AsOf: units.TimeMS(w.AsOf.UnixMilli()), Checksum: w.Checksum.String(),
	}
	if w.Final() {
		r.Revision, r.SealedAt = &w.Revision, new(units.TimeMS(w.SealedAt.UnixMilli()))
	}
	if w.ReopenedWhy != "" {
		r.ReopenedWhy = &w.ReopenedWhy
	}
	return r
}

func list(ctx context.Context, p *cli.Program, f store.Filter, limit int, asJSON bool) (err error) {
	l, err := p.Configuration()
	if err != nil {
		return err
	}
	s, err := open(ctx, l.Config)
	if err != nil {
		return err
	}
	if s != nil {
		defer func() { _ = s.Close() }() // nothing was written
	}
	zone, err := zoneinfo.Load(l.Config.TimeZone)
	if err != nil {
		return err
	}
	found := listReport{Copies: []copyReport{}}
	const minute = "2006-01-02 15:04"
	table := terminal.NewTable("BOARD", "PERIOD", "WINDOW", "REVISION", "TAKEN", "MEMBERS")
	table.Right[5] = true
	if err := each(ctx, s, f, limit, func(w *store.Window) error {
		found.Copies = append(found.Copies, reportOf(w))
		table.Add(terminal.Plain(w.Board), terminal.Plain(w.Period), terminal.Plain(w.Name), revisionText(w), w.AsOf.In(zone).Format(minute), units.Thousands(w.Members))
		return nil
	}); err != nil {
		return err
	}
	if asJSON {
		return cli.WriteJSON(p.Stdout, &found)
	}
	if len(found.Copies) == 0 {
		return terminal.Write(p.Stdout, "The archive has no such window.\n")
	}
	var text strings.Builder
	table.Write(&text)
	text.WriteString("\n" + copies(int64(len(found.Copies))) + "\n")
	return terminal.Write(p.Stdout, text.String())
}

func revisionText(w *store.Window) string {
	if w.Final() {
		return strconv.FormatInt(w.Revision, 10)
	}
	return "backup"
}

func copies(n int64) string {
	if n == 1 {
		return "1 copy"
	}
	return units.Thousands(n) + " copies"
}
