package ingest

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// locator finds where a worker goes on. It is its worker's goroutine's.
type locator struct {
	*partition
	resolver   *resolver
	shards     shards
	states     *states
	identities *identities
	commits    *commits
	status     *health.Status
	lag        *health.LagTracker
	carried    *carried
	onGap      start.OnGap
	short      start.Shortened
	books      *rulebooks
	// inherited is what was found with the positions.
	inherited inherited
	topic     string // the id of the topic that the position is of; empty if it is unknown
}

// located is what one look has found.
type located struct {
	states     []ledger.State
	facts      start.Facts
	partitions int
	committed  map[int]kafkaconn.Commit
	plans      map[int]ledger.Origin // of a first start that is repeated
	origin     *ledger.Origin        // of a beginning at the log's start, once it was looked for
	// skipped and joined: that was logged, which is the same in every shard.
	skipped, joined bool
}

// locate finds the positions that the worker goes on from, one a shard, as the start table
// says, and has them written and committed before anything is read. It returns
// errLocateAgain where it has to be called again.
func (l *locator) locate(ctx context.Context) (ledger.Positions, error) {
	short := l.short
	l.short = start.Shortened{} // what isn't seen now may be of a new leader afterwards
	f, err := l.find(ctx)
	if err != nil {
		return nil, err
	}
	decisions, err := start.DecideAll(f.states, f.facts, l.onGap)
	if err != nil {
		return nil, err
	}
	at := make(ledger.Positions, len(decisions))
	for shard, d := range decisions {
		switch d.Step {
		case start.GoOn:
			at[shard] = d.At
		case start.Confirm:
			l.short = short
			return nil, l.short.Confirm(l.field+onShard(shard, l.shards.count()), d.At, f.facts.Log)
		case start.Skip:
			at[shard], err = d.At, l.skip(ctx, f, shard, d.At)
		case start.Join:
			at[shard], err = ledger.At(f.facts.Log.Start), l.join(ctx, f, shard)
		default:
			return nil, l.beginOnce(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	if l.inherited, err = l.books.inherit(at, f.states); err != nil {
		return nil, err
	}
	lowest := at.Lowest()
	if err := l.sameLog(ctx, f, at); err != nil {
		return nil, err
	}
	l.topic = f.facts.Now.Topic
	l.carried.trail.Reach(lowest, f.states[0].Now.UnixMilli())
	if _, ok := f.committed[l.Number]; !ok || !goOn(decisions) {
		if err := l.commits.now(ctx, map[int]progress{l.Number: {offset: lowest, trail: l.carried.trail}}, l.Topic); err != nil {
			return at, err
		}
	}
	// Whoever was here last may not have come to commit, or something else may be
	// pending: where no event follows, monitors would show a lag for good.
	l.commits.at(l.Topic, l.Number, lowest, l.carried.trail)
	return at, nil
}

func goOn(all []start.Decision) bool {
	return !slices.ContainsFunc(all, func(d start.Decision) bool { return d.Step != start.GoOn })
}

// find asks Redis and Kafka for what the decision rests on.
func (l *locator) find(ctx context.Context) (*located, error) {
	states, err := l.states.get(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.extend(ctx, states); err != nil {
		return nil, err
	}
	if err := l.shards.checkSchema(states); err != nil {
		return nil, start.OtherSchema(err)
	}
	texts := textsOf(states, l.field)
	l.carried.compare(states)
	l.lag.Refills(refillOf(states, l.field))
	f := &located{states: states, facts: start.Facts{Partition: l.Partition}}
	if f.facts.Now, err = l.identities.of(ctx, l.Partition); err != nil {
		return nil, err
	}
	for i := range states {
		if err := start.Recreated(l.Topic, states[i].Origins[l.field], f.facts.Now); err != nil {
			return nil, err
		}
	}
	if f.partitions, err = l.siblings(ctx); err != nil {
		return nil, err
	}
	asked := kafkaconn.UpTo(f.partitions)
	if start.AllHaveTopic(states, l.Topic) {
		asked = []int{l.Number} // of hundreds of workers each asks for its own
	}
	committed, err := kafkaconn.Committed(ctx, l.kafka, l.group, l.Topic, asked...)
	if err != nil {
		return nil, err
	}
	f.committed, f.plans = l.resolver.terms.Where.Plans(committed)
	f.facts.Committed = len(f.committed) > 0
	all, err := kafkaconn.Logs(ctx, l.kafka, l.Topic, l.Number)
	if err != nil {
		return nil, err
	}
	f.facts.Log = all[l.Number]
	if lowest, ok := lowestOf(texts); ok {
		l.lag.Located(lowest, f.facts.Log.End)
	} else {
		l.lag.Ends(f.facts.Log.End, -1)
	}
	known := trailOf(f.committed[l.Number])
	if _, ok := f.committed[l.Number]; !ok && len(l.shards) > 1 {
		// Where several shards begin is committed by each worker once all have, so that what
		// was found out of the log's beginning is known to nobody but by the origins.
		known = l.begun(states)
	}
	known = known.With(&l.carried.trail)
	if known, err = l.sameRecords(ctx, l.Number, known, f.facts.Now); err != nil {
		return nil, err
	}
	l.carried.trail = known.Within(f.facts.Log.End)
	return f, nil
}

// extend adds the periods that Redis lacks, as the start of the process did: Redis has gone back to
// before that. It returns errLocateAgain if there were any, or if a schema has changed since
// the states were read.
func (l *locator) extend(ctx context.Context, states []ledger.State) error {
	again := false
	for i := range states {
		st := states[i] // which other workers share
		added, err := l.shards[i].Extend(ctx, &st, time.Duration(l.resolver.terms.MaxFuture)*time.Millisecond)
		if err != nil {
			return err
		}
		again = again || st.Schema != states[i].Schema
		for _, a := range added {
			l.log.Warn("a period was added again, which Redis had lost; its windows that start before since are incomplete until consumer rebuild counts them",
				zap.Stringer("period", a), zap.Time("since", time.UnixMilli(a.Since).UTC()))
		}
	}
	if again {
		return errLocateAgain
	}
	return nil
}

// sameLog halts if the log has lost events that count, and notes the lineage of what was read.
func (l *locator) sameLog(ctx context.Context, f *located, at ledger.Positions) error {
	was, err := l.lineage(ctx, f.committed, f.states, at)
	if err == nil {
		was, err = l.upToDate(ctx, was, at.Lowest())
	}
	l.carried.trail.Lineage = was
	return err
}

// upToDate returns the lineage up to a position. The committed one may end before it: an owner that died has counted
// events and not committed that.
func (l *locator) upToDate(ctx context.Context, was trail.Lineage, position int64) (trail.Lineage, error) {
	if was.Offset >= position {
		return was, nil
	}
	log, err := l.resolver.identities.of(ctx, l.Partition)
	if err != nil || log.Topic == "" {
		return was, err
	}
	// The broker that reports the leader's epoch may be behind. Then the leader's log ends that epoch early.
	end, err := kafkaconn.EpochEnd(ctx, l.kafka, l.Topic, l.Number, log.Epoch)
	if err != nil || end < position {
		return was, err
	}
	return trail.Lineage{Offset: position, Epoch: log.Epoch}, nil
}

// begun is the trail by the origin of the first shard that has one of the partition.
func (l *locator) begun(states []ledger.State) (known trail.Trail) {
	for i := range states {
		if o, err := ledger.ParseOrigin(states[i].Origins[l.field]); err == nil {
			known.Add(o.Offset, l.resolver.terms.LatestBefore(o))
			known.Lineage = trail.Lineage{Offset: o.Offset, Epoch: o.Log.Epoch}
			break
		}
	}
	return known
}
