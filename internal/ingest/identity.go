package ingest

// This file compares the log from which a partition was counted with the log that Kafka has now. A topic that
// is deleted and created again has another id. An election that loses records ends a leader's epoch before
// those records.

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

// identities caches the logs of all topics, shared by the workers of a process.
type identities struct {
	ask func(context.Context) (map[string]map[int]ledger.Log, error)

	token chan struct{} // held while found and asked are used, and during the request to a broker
	found map[string]map[int]ledger.Log
	asked time.Time
}

// identityEvery is how often the log of a running worker is compared with Kafka's. A cached answer is shared
// for less than that.
const identityEvery = 5 * time.Second

func newIdentities(ask func(context.Context) (map[string]map[int]ledger.Log, error)) *identities {
	return &identities{ask: ask, token: make(chan struct{}, 1)}
}

// of returns the log of a partition, at most a second old; for a partition that the cache lacks, the current
// one. The zero Log means unknown.
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

// flow lets watchIdentities end a worker's flow. Its topic is the id of the topic to which the flow's position
// belongs.
type flow struct {
	topic string
	end   context.CancelCauseFunc
}

// watchIdentities ends the flows whose topic was created again: their workers locate again, and halt. It runs
// until the generation ends.
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

// epochEnd returns the offset at which a leader's epoch ends in the current log. If the epoch is the latest
// one, it asks no broker and returns math.MaxInt64. It also returns math.MaxInt64 if the offset is unknown.
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

// sameRecords returns the part of a trail that is valid for the current log: an election may have lost the
// records to which its newest marks refer.
func (p *partition) sameRecords(ctx context.Context, number int, known trail.Trail, now ledger.Log) (trail.Trail, error) {
	if known.Lineage.Offset == 0 {
		return known, nil
	}
	end, err := p.epochEnd(ctx, number, known.Lineage.Epoch, now)
	return known.Before(end), err
}

// lineage returns the lineage of the records before the lowest position, as it was committed with the offset.
// It halts if the log has lost events that count. The ledger may be slightly ahead of the committed offset; the
// events in between are not compared. The records from which the boards were started or rebuilt are those of
// the origin's epoch, so an earlier committed lineage is obsolete.
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
	if !ok { // a first start of several shards: only the origin tells what the log was
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
