package check

// Check, of what would bring the standings back if Redis were lost now.

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/recovery"
)

// errUnknown says that something else, which is a finding of its own, has to be known first.
var errUnknown = errors.New("not without what Kafka and Redis hold")

// lookBack asks what the logs and the snapshots reach back to.
func lookBack(ctx context.Context, r *clients.Reader, consumer *ingest.Consumer, k *kafkaFacts, redis *redisFacts) (*recoveryFacts, error) {
	if k.err != nil || redis.state == nil {
		return nil, errUnknown
	}
	var topics []clients.ReadTopic
	for i := range k.topics {
		t := &k.topics[i]
		if t.err != nil || t.logsErr != nil || t.committedErr != nil {
			return nil, errUnknown
		}
		topics = append(topics, clients.ReadTopic{Name: t.name, Partitions: len(t.logs), Committed: t.committed})
	}
	kept, err := listSnapshots(ctx, r.Config)
	if err != nil {
		return nil, err
	}
	all, err := clients.NewBoards(r.Config, r.Client, k.cluster)
	if err != nil {
		return nil, err
	}
	v, err := clients.Recovery(ctx, r.Config, consumer, topics, all, redis.states[0].Clock, kept)
	if err != nil {
		return nil, clients.ExplainKafka(ctx, err, &r.Config.Kafka, topics[0].Name)
	}
	note, err := all.Shards()[0].RecoveryNote(ctx)
	if err != nil {
		return nil, err
	}
	return &recoveryFacts{v, note}, nil
}

// recoveryFacts are what would bring the standings back, and what was found by those who looked before.
type recoveryFacts struct {
	recovery.Verdict

	note ranking.RecoveryNote
}

// sinceWhen is since when it is so, as far as consumers that run have looked.
func (f *recoveryFacts) sinceWhen() string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch f.note.By {
	case string(f.By):
		return ", since " + at(f.note.Since)
	case "":
		return " (since when isn't known: no consumer has looked)"
	}
	return ", since after " + at(f.note.Looked)
}

// listSnapshots are those that are whole.
func listSnapshots(ctx context.Context, cfg *config.Config) ([]snapshot.Manifest, error) {
	s, err := clients.OpenSnapshots(ctx, cfg)
	if err != nil || s == nil {
		return nil, err
	}
	defer s.Close()
	all, err := s.List(ctx)
	if errors.Is(err, snapshot.ErrDamaged) {
		err = nil // the others may do
	}
	return all, err
}

func judgeRecovery(f *recoveryFacts, err error, cfg *config.Config) []finding {
	const check = "if Redis is lost"
	s := &section{name: sectionRecovery}
	if err != nil {
		s.unchecked(check, "", err.Error(), "")
		return s.all
	}
	switch f.By {
	case recovery.Log:
		s.ok(check, "", "the log alone would bring the standings back"+f.sinceWhen())
		return s.all
	case recovery.Snapshot:
		s.ok(check, "", "the snapshot "+f.Name+" and the log since "+f.Began.UTC().Format(time.RFC3339)+" would bring the standings back"+f.sinceWhen())
		return s.all
	}
	lost := "points would be lost" + f.sinceWhen() + ": " + f.WhyNotLog
	switch {
	case cfg.Snapshots.URL == "":
		s.warn(check, "", lost, "set snapshots.url (docs/snapshots.md), or have Kafka keep the log for as long as windows live, or back up Redis")
	case f.WhyNotSnapshot == "":
		s.warn(check, "", lost+"; and there is no whole snapshot", "see docs/operations.md, No snapshot is taken; consumer snapshot take takes one now")
	default:
		s.warn(check, "", lost+"; and "+f.WhyNotSnapshot,
			"take a snapshot now (consumer snapshot take), and have the log kept for longer than snapshots.interval and what one takes")
	}
	return s.all
}
