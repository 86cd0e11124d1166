package snapshot

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/archive/snapshot"
)

// lease is how long a snapshot may read nothing before another may be begun.
const lease = 2 * time.Minute

func take(ctx context.Context, p *cli.Program, asJSON bool) error {
	cfg, s, err := open(ctx, p)
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := clients.OpenReader(ctx, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	cluster, err := clusterOf(ctx, cfg)
	if err != nil {
		return err
	}
	all, err := clients.NewBoards(r.Config, r.Client, cluster)
	if err != nil {
		return err
	}
	if err := all.TrySnapshots(ctx); err != nil {
		return clients.ExplainRedis(ctx, err, r.Config)
	}
	var rows atomic.Int64
	shown := terminal.ShowProgress(p.Stderr, "taking a snapshot", "standings", 0, rows.Load)
	m, err := s.Take(ctx, all.Shards(), snapshot.Pace{
		Pause: cfg.Snapshots.Pause, Lease: lease,
		Progress: func(at snapshot.Progress) { rows.Store(at.Rows) },
	})
	shown.Stop()
	if err != nil {
		return clients.ExplainRedis(ctx, err, r.Config)
	}
	if asJSON {
		return cli.WriteJSON(p.Stdout, reportOf(m))
	}
	c := m.Counts()
	return terminal.Write(p.Stdout, fmt.Sprintf("%s: %s in %s, %s, in %s\n", m.Name, units.Plural(c.Rows, "standing"),
		units.Plural(c.Windows, "window"), units.ShortBytes(m.Bytes()), took(m)))
}

// clusterOf is the id of the Kafka cluster, which is part of the schema.
func clusterOf(ctx context.Context, cfg *config.Config) (string, error) {
	client, err := clients.NewKafka(&cfg.Kafka)
	if err != nil {
		return "", err
	}
	defer clients.CloseKafka(client)
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
	if err != nil {
		return "", clients.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	}
	return m.ClusterID, nil
}
