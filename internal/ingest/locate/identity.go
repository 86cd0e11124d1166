package locate

// This file compares the log from which a partition was counted with the log that Kafka has now. A topic that
// is deleted and created again has another id. An election that loses records ends a leader's epoch before
// those records.

import (
	"context"
	"math"
	"time"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Identities caches the logs of all topics, shared by the workers of a process.
type Identities struct {
	ask func(context.Context) (map[string]map[int]ledger.Log, error)

	token chan struct{} // held while found and asked are used, and during the request to a broker
	found map[string]map[int]ledger.Log
	asked time.Time
}

// NewIdentities returns a cache of the logs that ask returns.
func NewIdentities(ask func(context.Context) (map[string]map[int]ledger.Log, error)) *Identities {
	return &Identities{ask: ask, token: make(chan struct{}, 1)}
}

// Of returns the log of a partition, at most a second old; for a partition that the cache lacks, the current
// one. The zero Log means unknown.
func (i *Identities) Of(ctx context.Context, p ledger.Partition) (ledger.Log, error) {
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

// EpochEnd returns the offset at which a leader's epoch ends in the current log. If the epoch is the latest
// one, it asks no broker and returns math.MaxInt64. It also returns math.MaxInt64 if the offset is unknown.
func (r *Resolver) EpochEnd(ctx context.Context, number int, epoch int32, now ledger.Log) (int64, error) {
	if now.Topic == "" || epoch == now.Epoch {
		return math.MaxInt64, nil
	}
	end, err := kafkaconn.EpochEnd(ctx, r.Kafka, r.Topic, number, epoch)
	if err == nil && end < 0 {
		end = math.MaxInt64
	}
	return end, err
}

// sameRecords returns the part of a trail that is valid for the current log: an election may have lost the
// records to which its newest marks refer.
func (r *Resolver) sameRecords(ctx context.Context, number int, known trail.Trail, now ledger.Log) (trail.Trail, error) {
	if known.Lineage.Offset == 0 {
		return known, nil
	}
	end, err := r.EpochEnd(ctx, number, known.Lineage.Epoch, now)
	return known.Before(end), err
}

// lineage returns the lineage of the records before the lowest position, as it was committed with the offset.
// It halts if the log has lost events that count. The ledger may be slightly ahead of the committed offset; the
// events in between are not compared. The records from which the boards were started or rebuilt are those of
// the origin's epoch, so an earlier committed lineage is obsolete.
func (r *Resolver) lineage(ctx context.Context, committed map[int]kafkaconn.Commit, states []ledger.State, at ledger.Positions) (trail.Lineage, error) {
	commit, ok := committed[r.Number]
	was := commits.TrailOf(commit).Lineage
	var counted, begun int64
	for i := range at {
		counted = max(counted, at[i].From, at[i].To)
		o, err := ledger.ParseOrigin(states[i].Origins[r.Field])
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
	end, err := kafkaconn.EpochEnd(ctx, r.Kafka, r.Topic, r.Number, was.Epoch)
	if err != nil {
		return trail.Lineage{}, err
	}
	if err := start.Lost(r.Field, was, end, counted); err != nil {
		return trail.Lineage{}, err
	}
	return trail.Lineage{Offset: min(was.Offset, at.Lowest()), Epoch: was.Epoch}, nil
}
