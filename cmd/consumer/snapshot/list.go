package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/archive/snapshot"
)

// listReport is the JSON of list; docs/json.md has its fields.
type listReport struct {
	Place     string           `json:"place"`
	Snapshots []snapshotReport `json:"snapshots"`
	Damaged   []string         `json:"damaged"` // what is wrong with those that aren't whole any more
}

// snapshotReport is one of them, and the JSON of take.
type snapshotReport struct {
	Name    string `json:"name"`
	Prefix  string `json:"prefix"`
	Began   string `json:"began"`
	Ended   string `json:"ended"`
	Shards  int    `json:"shards"`
	Windows int64  `json:"windows"` // over all shards
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
}

func reportOf(m *snapshot.Manifest) snapshotReport {
	c := m.Counts()
	return snapshotReport{
		Name: m.Name, Prefix: m.Prefix, Began: units.TimeMS(m.Began.UnixMilli()), Ended: units.TimeMS(m.Ended.UnixMilli()),
		Shards: len(m.Files), Windows: c.Windows, Rows: c.Rows, Bytes: m.Bytes(),
	}
}

func list(ctx context.Context, p *cli.Program, asJSON bool) error {
	cfg, s, err := open(ctx, p)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.List(ctx)
	if err != nil && !errors.Is(err, snapshot.ErrDamaged) {
		return err
	}
	r := listReport{Place: s.Files.String(), Snapshots: []snapshotReport{}, Damaged: []string{}}
	for i := range all {
		r.Snapshots = append(r.Snapshots, reportOf(&all[i]))
	}
	if err != nil {
		r.Damaged = strings.Split(err.Error(), "\n")
	}
	if asJSON {
		err = cli.WriteJSON(p.Stdout, &r)
	} else {
		err = writeList(p, all, cfg.TimeZone)
	}
	if err == nil && len(r.Damaged) > 0 {
		err = errors.New(strings.Join(r.Damaged, "\n"))
	}
	return err
}

func writeList(p *cli.Program, all []snapshot.Manifest, in string) error {
	zone, err := time.LoadLocation(in)
	if err != nil {
		return fmt.Errorf("time_zone: %w", err)
	}
	if len(all) == 0 {
		return terminal.Write(p.Stdout, "There is no snapshot.\n")
	}
	table := terminal.NewTable("NAME", "PREFIX", "BEGAN", "TOOK", "WINDOWS", "ROWS", "SIZE")
	for column := 3; column <= 6; column++ {
		table.Right[column] = true
	}
	for i := range all {
		m := &all[i]
		c := m.Counts()
		table.Add(m.Name, terminal.Plain(m.Prefix), m.Began.In(zone).Format("2006-01-02 15:04:05"), took(m),
			units.Thousands(c.Windows), units.Thousands(c.Rows), units.ShortBytes(m.Bytes()))
	}
	var text strings.Builder
	table.Write(&text)
	return terminal.Write(p.Stdout, text.String())
}

func took(m *snapshot.Manifest) string {
	return m.Ended.Sub(m.Began).Round(time.Second / 10).String()
}
