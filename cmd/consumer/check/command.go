// Package check implements `consumer check`: a dry run that checks everything that run needs and gives a
// remedy for each problem. It leaves nothing behind.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Command returns the check command.
func Command(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, Kafka and Redis",
		Long: `Checks the configuration, Kafka and Redis as run does. Shows what each check found, the
remedy, and where every partition would start now.

  ok           as required
  warning      run works, but something should be known or fixed
  wrong        run would exit, wait, or halt a partition
  not checked  the check was not possible, with the reason

It is safe to run next to a consumer: it creates no topic, joins no group and commits nothing. In
Redis it tries the commands of the scripts on scratch keys under the prefix, as run does, and
removes them (without the permission they expire after a minute). Calls have the timeouts
kafka.timeout and redis.timeout; if one server is unavailable the other is still
checked.

The exit code is 0 if run would work, 1 if something is wrong, and 2 if the configuration is
invalid; then nothing else is checked.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if _, ok := terminal.Width(p.Stderr); ok {
				defer time.AfterFunc(longWait, func() { fmt.Fprintln(p.Stderr, "checking Kafka and Redis…") }).Stop()
			}
			r, err := run(c.Context(), l.Config)
			if err != nil {
				return err
			}
			if asJSON {
				err = cli.WriteJSON(p.Stdout, r)
			} else {
				err = r.write(p.Stdout, p.Colours(p.Stdout))
			}
			if err != nil {
				return err
			}
			if r.Result == outcomeWrong {
				return errFound
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// longWait is the time after which a person sees a progress message.
const longWait = 2 * time.Second

// errFound makes the exit code 1. It has no text because the report already names the problems.
var errFound = errors.New("")

// run queries Kafka, Redis and the archive concurrently, and then works out what a consumer would do. A
// server that cannot be reached is a finding, not an error.
func run(ctx context.Context, cfg *config.Config) (*checkReport, error) {
	configured, err := judgeConfig(cfg, time.Now())
	if err != nil {
		return nil, err
	}
	reader, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	client, err := app.NewKafka(&cfg.Kafka, checkedTopics(cfg)...)
	if err != nil {
		return nil, err
	}
	defer app.CloseKafka(client)

	var kafkaSide *kafkaFacts
	var redisSide *redisFacts
	var archive *archiveFacts
	var both sync.WaitGroup
	both.Go(func() { kafkaSide = (&kafkaQueries{cfg, client}).gather(ctx) })
	both.Go(func() { redisSide = gatherRedis(ctx, reader) })
	both.Go(func() { archive = gatherArchive(ctx, cfg) })
	both.Wait()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	if n := reader.Config.Redis.Shards; n != cfg.Redis.Shards {
		redisSide.number = app.OtherNumber(cfg, n)
	}
	all, err := app.NewBoards(reader.Config, reader.Client, kafkaSide.cluster)
	if err != nil {
		return nil, err
	}
	consumer, err := dryConsumer(reader.Config, all, client)
	if err != nil {
		return nil, err
	}
	if redisSide.state != nil {
		redisSide.added = all.Adds(redisSide.states, cfg.MaxFuture)
		redisSide.difference = reader.CheckSchema(kafkaSide.cluster, redisSide.states)
		lookAhead(ctx, cfg, consumer, kafkaSide, redisSide)
	}
	loss, lossErr := gatherLoss(ctx, cfg, all, consumer, kafkaSide, redisSide)
	r := &checkReport{At: units.TimeMS(time.Now().UnixMilli()), Starts: reportStarts(kafkaSide.topics, redisSide.state), Shards: redisSide.shards}
	r.Findings = slices.Concat(configured, judgeKafka(kafkaSide, cfg, &consumer.Rules, cmp.Or(redisSide.err, redisSide.noState)),
		judgeDuplicates(cfg, kafkaSide.topics), judgeRedis(redisSide, cfg.Kafka.Topics), judgeArchive(archive), judgeLoss(loss, lossErr))
	r.Result = conclude(r.Findings)
	return r, nil
}

// lookAhead finds where each partition would start.
func lookAhead(ctx context.Context, cfg *config.Config, consumer *ingest.Consumer, k *kafkaFacts, r *redisFacts) {
	for i := range k.topics {
		t := &k.topics[i]
		if t.err == nil && t.logsErr == nil && t.committedErr == nil {
			t.outlook, t.outlookErr = consumer.Outlook(ctx, t.name, r.states, t.logs, t.committed)
			t.outlookErr = app.ExplainKafka(ctx, t.outlookErr, &cfg.Kafka, t.name)
		}
	}
}

// dryConsumer returns the consumer that run would start. It is never started.
func dryConsumer(cfg *config.Config, all *boards.Boards, client *kafka.Client) (*ingest.Consumer, error) {
	settings, err := cfg.Kafka.Connection()
	if err != nil {
		return nil, err
	}
	transport, ok := client.Transport.(*kafkaconn.Transport)
	if !ok {
		return nil, fmt.Errorf("a transport of type %T", client.Transport)
	}
	return app.NewConsumer(cfg, settings, transport, all, nil, app.BeforeCounting{}, zap.NewNop(), new(counts.Stats))
}
