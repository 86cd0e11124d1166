package ingest

// This file compares the log that a partition is counted from with the one that Kafka has: a topic that is deleted and
// created again has another id, and an election that loses records ends a leader's epoch before them.

import (
	"context"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// identities are the logs of all topics, which the workers of a process share.
type identities struct {
	ask func(context.Context) (map[string]map[int]ledger.Log, error)

	token chan struct{} // taken while the fields below are used, and while a broker is asked
	found map[string]map[int]ledger.Log
	asked time.Time
}

// identityEvery is how often a running worker's log is compared with Kafka's; an answer is shared for less.
const identityEvery = 5 * time.Second

func newIdentities(ask func(context.Context) (map[string]map[int]ledger.Log, error)) *identities {
	return &identities{ask: ask, token: make(chan struct{}, 1)}
}

// of returns the log of a partition, as of a second ago or later; of one that was added since, as of now. The zero Log
// is unknown.
func (i *identities) of(ctx context.Context, p ledger.Partition) (ledger.Log, error) {
	select {
	case i.token <- struct{}{}:
		defer func() { <-i.token }()
	case <-ctx.Done():
		return ledger.Log{}, context.Cause(ctx)
	}
	if _, known := i.found[p.Topic][p.Number]; !known || time.Since(i.asked) > time.Second {
		asked := time.Now()
		found, err := i.ask(ctx)
		if err != nil {
			return ledger.Log{}, err
		}
		i.found, i.asked = found, asked
	}
	return i.found[p.Topic][p.Number], nil
}

// flow lets watchIdentities end a worker's flow. It has the id of the topic that the flow's position belongs to.
type flow struct {
	topic string
	end   context.CancelCauseFunc
}

// watchIdentities ends the flows whose topic was created again: their workers locate anew, and halt. It works until
// the generation ends.
func (c *Consumer) watchIdentities(ctx context.Context, workers []*worker) {
	tick := time.NewTicker(identityEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, w := range workers {
			log, err := c.identities.of(ctx, w.Partition)
			if err != nil {
				c.Log.Debug("could not ask for the ids of topics", zap.Error(err))
				break
			}
			if f := w.flows.Load(); f != nil && f.topic != "" && log.Topic != "" && log.Topic != f.topic {
				f.end(errLocateAgain)
			}
		}
	}
}

// epochEnd returns the offset at which a leader's epoch ends in the log that Kafka has now. It asks no broker if that is
// the latest epoch, and returns math.MaxInt64 then or if the offset is unknown.
func (p *partition) epochEnd(ctx context.Context, number int, epoch int32, now ledger.Log) (int64, error) {
	if now.Topic == "" || epoch == now.Epoch {
		return math.MaxInt64, nil
	}
	end, err := kafkaconn.EpochEnd(ctx, p.kafka, p.Topic, number, epoch)
	if err == nil && end < 0 {
		end = math.MaxInt64
	}
	return end, err
}

// sameRecords returns the part of a trail that holds for the log that Kafka has now: an election may have lost the records
// that its newest marks bound.
func (p *partition) sameRecords(ctx context.Context, number int, known trail.Trail, now ledger.Log) (trail.Trail, error) {
	if known.Lineage.Offset == 0 {
		return known, nil
	}
	end, err := p.epochEnd(ctx, number, known.Lineage.Epoch, now)
	return known.Before(end), err
}

// lineage is that of the records before the lowest position, by what was committed with the offset; it halts if the log
// has lost events that count. The ledger may be a moment ahead of the offset, and its newest events are not compared.
// The records that the boards began with, or were rebuilt from, are those that the origin's epoch had, so an
// earlier lineage says nothing any more.
func (p *partition) lineage(ctx context.Context, committed map[int]kafkaconn.Commit, states []ledger.State, at ledger.Positions) (trail.Lineage, error) {
	commit, ok := committed[p.Number]
	was := trailOf(commit).Lineage
	var counted, begun int64
	for i := range at {
		counted = max(counted, at[i].From, at[i].To)
		o, err := ledger.ParseOrigin(states[i].Origins[p.field])
		if err == nil && o.Log.Topic != "" && (was.Offset == 0 || was.Epoch < o.Log.Epoch) {
			was, begun = trail.Lineage{Offset: commit.Offset, Epoch: o.Log.Epoch}, o.Offset
		}
	}
	if !ok { // a first start of several shards: the origin is all that is known of the log
		was.Offset, counted = begun, begun
	}
	if was.Offset == 0 {
		return trail.Lineage{}, nil
	}
	end, err := kafkaconn.EpochEnd(ctx, p.kafka, p.Topic, p.Number, was.Epoch)
	if err != nil {
		return trail.Lineage{}, err
	}
	if err := start.Lost(p.field, was, end, counted); err != nil {
		return trail.Lineage{}, err
	}
	return trail.Lineage{Offset: min(was.Offset, at.Lowest()), Epoch: was.Epoch}, nil
}
