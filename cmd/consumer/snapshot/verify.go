package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/archive/snapshot"
)

// verifyReport is the JSON of verify; docs/json.md has its fields.
type verifyReport struct {
	Snapshot snapshotReport  `json:"snapshot"`
	Shards   []verifiedShard `json:"shards"`
}

type verifiedShard struct {
	Shard   int     `json:"shard"`
	Problem *string `json:"problem"` // null: it is what was written
}

func verify(ctx context.Context, p *cli.Program, name string, asJSON bool) error {
	cfg, s, err := open(ctx, p)
	if err != nil {
		return err
	}
	defer s.Close()
	m, err := chosen(ctx, s, name, cfg.Redis.Prefix)
	if err != nil {
		return err
	}
	r := verifyReport{Snapshot: reportOf(m), Shards: []verifiedShard{}}
	wrong := 0
	for shard := range m.Files {
		v := verifiedShard{Shard: shard}
		if _, err := s.Survey(ctx, m, shard); errors.Is(err, snapshot.ErrDamaged) {
			v.Problem = new(err.Error())
			wrong++
		} else if err != nil {
			return err
		}
		r.Shards = append(r.Shards, v)
	}
	if asJSON {
		err = cli.WriteJSON(p.Stdout, &r)
	} else if wrong == 0 {
		err = terminal.Write(p.Stdout, fmt.Sprintf("%s is whole: %s, of %s\n", m.Name, units.ShortBytes(m.Bytes()), units.Plural(m.Counts().Rows, "standing")))
	}
	if err != nil || wrong == 0 {
		return err
	}
	for _, v := range r.Shards {
		if v.Problem != nil {
			return errors.New(*v.Problem) // the first; the JSON has all
		}
	}
	return nil
}

// chosen is a snapshot by its name, or the newest of the prefix.
func chosen(ctx context.Context, s *clients.Snapshots, name, prefix string) (*snapshot.Manifest, error) {
	if name != "" {
		return s.Open(ctx, name)
	}
	all, err := s.List(ctx)
	for i := range all {
		if all[i].Prefix == prefix {
			return &all[i], nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s has no whole snapshot of %q", s.Files, prefix)
	}
	return nil, err
}
