package locate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Resolver queries Kafka for where partitions of a topic begin, and for what is known of deleted records. It
// writes nothing. The resolvers of a process take turns through starting; no other field changes.
type Resolver struct {
	*source.Handle
	Room      memory.Room
	Fetcher   func() *fetch.Fetcher // reads outside of the memory budget
	Starting  chan struct{}         // a token for reading outside of the budget
	Throttled func(time.Duration)   // receives how long a broker throttles the client
	Traces    func(context.Context) (string, error)
	Stats     *counts.Stats

	Identities *Identities
	Terms      *start.Terms
}

// clock returns Redis's time at the moment of the call. If nothing else bounds the times of deleted records,
// the time after Kafka's answer does. An earlier time, T0, would bound nothing:
//
//	Redis is queried   the process sleeps            Kafka is queried
//	its clock is T0    a record of T1 arrives, and   the log begins after it
//	                   is deleted
type clock func() time.Time

// originOf returns the origin of a partition that is read from its log's start, and adds the bound that it
// finds to the known trail.
func (r *Resolver) originOf(ctx context.Context, log kafkaconn.Log, known *trail.Trail, clock clock) (ledger.Origin, error) {
	identity, err := r.Identities.Of(ctx, r.Partition)
	if err != nil {
		return ledger.Origin{}, err
	}
	if log.Start == 0 {
		return ledger.Origin{Log: identity}, nil
	}
	// This read is outside of the memory budget, so only one runs at a time: a gap may affect all partitions.
	select {
	case r.Starting <- struct{}{}:
		defer func() { <-r.Starting }()
	case <-ctx.Done():
		return ledger.Origin{}, context.Cause(ctx)
	}
	first, err := r.FirstRecord(ctx, r.Number, log, nil)
	if err != nil {
		return ledger.Origin{}, err
	}
	j := r.Terms.Judge(clock())
	latest, _ := j.Latest(log.Start, known, first)
	known.Add(log.Start, latest)
	origin := j.Origin(log.Start, latest)
	origin.Log = identity
	return origin, nil
}

// resolveAll resolves where all partitions of the topic start, and their trails at that point. The first worker
// does this for all partitions: if they were resolved one by one, hours apart, they would start at different
// times.
func (r *Resolver) resolveAll(ctx context.Context, s start.Step, partitions int, committed map[int]kafkaconn.Commit, plans map[int]ledger.Origin, clock clock) ([]ledger.StartPosition, []trail.Trail, error) {
	from, err := r.Terms.Asked(s, clock())
	if err == nil && s == start.Begin {
		err = r.firstStart(ctx, from)
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := r.Beginnings(ctx, from, partitions, committed)
	if err != nil {
		return nil, nil, err
	}
	set, trails, err := r.Terms.Topic(r.Topic, s, from, all, r.Terms.Judge(clock()))
	if err != nil {
		return nil, nil, err
	}
	for i := range set {
		if set[i].Origin.Log, err = r.Identities.Of(ctx, set[i].Partition); err != nil {
			return nil, nil, err
		}
	}
	if s == start.Begin {
		r.Terms.Follow(plans, set, trails, all)
	}
	return set, trails, nil
}

// Beginnings queries Kafka about all partitions of the topic.
func (r *Resolver) Beginnings(ctx context.Context, from start.Where, partitions int, committed map[int]kafkaconn.Commit) ([]start.Beginning, error) {
	var logs map[int]kafkaconn.Log
	var since map[int]int64
	var err error
	if from.From == start.FromWindow || from.From == start.FromTime {
		logs, since, err = kafkaconn.LogsSince(ctx, r.Kafka, r.Topic, time.UnixMilli(from.Since()), kafkaconn.UpTo(partitions)...)
	} else {
		logs, err = kafkaconn.Logs(ctx, r.Kafka, r.Topic, kafkaconn.UpTo(partitions)...)
	}
	if err != nil {
		return nil, err
	}
	all := make([]start.Beginning, partitions)
	for _, p := range slices.Sorted(maps.Keys(logs)) {
		identity, err := r.Identities.Of(ctx, ledger.Partition{Topic: r.Topic, Number: p})
		if err != nil {
			return nil, err
		}
		known, err := r.sameRecords(ctx, p, commits.TrailOf(committed[p]), identity)
		if err != nil {
			return nil, err
		}
		b := start.Beginning{Log: logs[p], Since: -1, Trail: known.Within(logs[p].End), Committed: committed[p].Offset}
		if at, ok := since[p]; ok {
			b.Since = at
		}
		if from.From == start.FromTime && b.Since == b.Log.Start { // Kafka may have found none, and older records must not count
			found, err := r.FirstRecord(ctx, p, b.Log, func(rec *recordbatch.Record) bool { return rec.Time >= from.Since() && rec.Time > 0 })
			if err != nil {
				return nil, err
			}
			if b.Since = found.Offset; found.None {
				b.Since = -1
			}
		}
		if b.First, err = r.FirstRecord(ctx, p, b.Log, nil); err != nil {
			return nil, err
		}
		all[p] = b
	}
	return all, nil
}

// FirstRecord reads the first wanted record of a log; if wanted is nil, the first record. It retries transient
// errors for a while, because the caller would have to start again with the topic's first partition.
func (r *Resolver) FirstRecord(ctx context.Context, partition int, log kafkaconn.Log, wanted func(*recordbatch.Record) bool) (start.First, error) {
	p := ledger.Partition{Topic: r.Topic, Number: partition}
	f := r.Fetcher()
	f.Topic, f.Partition, f.MaxBytes = r.Topic, partition, min(f.MaxBytes, 64<<10) // one larger batch is returned whole
	records := recordbatch.Reader{MaxRecord: r.Room.MaxRecord, MaxCodec: r.Room.MaxCodec}
	defer records.Close()
	wait, shown, heard := retry.ForEver.Start(), start.LogEnd{}, time.Now()
	for at := log.Start; at < log.End; {
		resp, err := f.Fetch(ctx, at)
		if err == nil {
			err = resp.Err
		}
		if err = source.HaltOfFetch(err, p.String(), at); err != nil {
			shown.Unseen()
			switch halt, halts := errors.AsType[*health.Halt](err); {
			case halts:
				return start.First{}, halt
			case ctx.Err() != nil, !source.Passes(err), time.Since(heard) >= source.OutagePatience:
				return start.First{}, fmt.Errorf("read the first record of %v: %w", p, err)
			}
			r.Stats.KafkaTries.Add(1)
			if err := wait.Next(ctx); err != nil {
				return start.First{}, err
			}
			continue
		}
		heard = time.Now()
		r.Throttled(resp.Throttled)
		if !resp.Answered() {
			shown.Unseen()
			if resp.Throttled == 0 {
				return start.First{}, fmt.Errorf("read the first record of %v: the broker didn't answer for it", p)
			}
			continue // the next call waits for that
		}
		resp.Read(&records, at)
		rec, err := records.Next()
		for err == nil && wanted != nil && !wanted(rec) {
			rec, err = records.Next()
		}
		if err == nil {
			found := start.First{Offset: rec.Offset, Time: max(rec.Time, 0), Appended: records.LogAppendTime()}
			resp.Release()
			return found, nil
		}
		resp.Release()
		if old, ok := errors.AsType[*recordbatch.OldFormatError](err); ok { // its time is known; a reader halts at it
			return start.First{Offset: records.Position(), Time: max(old.Time, 0)}, nil
		}
		if !errors.Is(err, io.EOF) {
			return start.First{}, source.HaltOfRecords(err, p, &records)
		}
		came := records.Position() > at
		if shown.Seen(at, !came); came {
			at = records.Position()
			continue
		}
		if shown.Confirmed() {
			return start.First{}, fmt.Errorf("read the first record of %v: nothing came", p)
		}
		if err := wait.Next(ctx); err != nil {
			return start.First{}, err
		}
	}
	return start.First{None: true}, nil
}
