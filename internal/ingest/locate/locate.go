// Package locate finds where a partition starts. A Locator gathers the facts (the ledgers of all shards, the group's
// commits, the log), lets start.DecideAll decide, and writes the position to Redis and then to Kafka, before anything
// is read. A Resolver asks Kafka for the facts of one topic and writes nothing; check and rebuild use it, too.
//
//	ledgers ──┐                              GoOn     continue there
//	commits ──┼─▶ start.DecideAll ─▶ step ─▶ Confirm  the log is short: locate again, then halt
//	log ──────┘          │                   Skip     move the ledger over a gap       (begin.go)
//	                     ▼                   Join     a partition was added: its start (begin.go)
//	                 a halt                  else     the topic begins in a shard      (begin.go)
package locate

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Locator finds the positions from which a worker continues. Only its worker's goroutine uses it.
type Locator struct {
	*Resolver

	Shards  shards.All
	States  *shards.States
	Commits *commits.Pending
	Status  *health.Status
	Lag     *health.LagTracker
	Books   *rulebook.Books
	Trail   *trail.Trail                // as far as the last flow swept, or further
	Compare func(states []ledger.State) // receives the states that it finds
	Short   start.Shortened

	// Inherited and TopicID were found together with the positions.
	Inherited rulebook.Inherited
	TopicID   string // id of the topic to which the position belongs; empty if unknown
}

// ErrAgain reports that the worker must locate again, at once or after a wait.
var ErrAgain = errors.New("read the ledger again")

// located holds the facts that one locate has found.
type located struct {
	states     []ledger.State
	facts      start.Facts
	partitions int
	committed  map[int]kafkaconn.Commit
	plans      map[int]ledger.Origin // of a first start that is repeated
	origin     *ledger.Origin        // for reading from the log's start; nil until it is resolved
	// skipped and joined are true once the skip or join was logged: it is the same in every shard.
	skipped, joined bool
}

// Locate finds the positions, one per shard, from which the worker continues, by the start table. It writes and
// commits them before anything is read. It returns ErrAgain if it must be called again.
func (l *Locator) Locate(ctx context.Context) (ledger.Positions, error) {
	short := l.Short
	l.Short = start.Shortened{} // reset unless the log is short again: the next answer may be a new leader's
	f, err := l.find(ctx)
	if err != nil {
		return nil, err
	}
	decisions, err := start.DecideAll(f.states, f.facts, l.Terms.OnGap)
	if err != nil {
		return nil, err
	}
	at := make(ledger.Positions, len(decisions))
	for shard, d := range decisions {
		switch d.Step {
		case start.GoOn:
			at[shard] = d.At
		case start.Confirm:
			l.Short = short
			return nil, l.Short.Confirm(l.Field+shards.On(shard, l.Shards.Count()), d.At, f.facts.Log)
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
	if l.Inherited, err = l.Books.Inherit(at, f.states); err != nil {
		return nil, err
	}
	lowest := at.Lowest()
	if err := l.sameLog(ctx, f, at); err != nil {
		return nil, err
	}
	l.TopicID = f.facts.Now.Topic
	l.Trail.Reach(lowest, f.states[0].Now.UnixMilli())
	if _, ok := f.committed[l.Number]; !ok || !goOn(decisions) {
		if err := l.Commits.Now(ctx, map[int]commits.Progress{l.Number: {Offset: lowest, Trail: *l.Trail}}, l.Topic); err != nil {
			return at, err
		}
	}
	// The previous owner may not have committed, or another offset may be pending. Without this commit,
	// monitors would permanently show a lag in a partition without new events.
	l.Commits.At(l.Topic, l.Number, lowest, *l.Trail)
	return at, nil
}

func goOn(all []start.Decision) bool {
	return !slices.ContainsFunc(all, func(d start.Decision) bool { return d.Step != start.GoOn })
}

// find queries Redis and Kafka for the facts on which the decision is based.
func (l *Locator) find(ctx context.Context) (*located, error) {
	states, err := l.States.Get(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.extend(ctx, states); err != nil {
		return nil, err
	}
	if err := l.Shards.CheckSchema(states); err != nil {
		return nil, start.OtherSchema(err)
	}
	texts := shards.TextsOf(states, l.Field)
	l.Compare(states)
	l.Lag.Refills(shards.RefillOf(states, l.Field))
	f := &located{states: states, facts: start.Facts{Partition: l.Partition}}
	if f.facts.Now, err = l.Identities.Of(ctx, l.Partition); err != nil {
		return nil, err
	}
	for i := range states {
		if err := start.Recreated(l.Topic, states[i].Origins[l.Field], f.facts.Now); err != nil {
			return nil, err
		}
	}
	if f.partitions, err = l.Siblings(ctx); err != nil {
		return nil, err
	}
	asked := kafkaconn.UpTo(f.partitions)
	if start.AllHaveTopic(states, l.Topic) {
		asked = []int{l.Number} // with hundreds of workers, each asks only for its own partition
	}
	committed, err := kafkaconn.Committed(ctx, l.Kafka, l.Group, l.Topic, asked...)
	if err != nil {
		return nil, err
	}
	f.committed, f.plans = l.Terms.Where.Plans(committed)
	f.facts.Committed = len(f.committed) > 0
	all, err := kafkaconn.Logs(ctx, l.Kafka, l.Topic, l.Number)
	if err != nil {
		return nil, err
	}
	f.facts.Log = all[l.Number]
	if lowest, ok := shards.LowestOf(texts); ok {
		l.Lag.Located(lowest, f.facts.Log.End)
	} else {
		l.Lag.Ends(f.facts.Log.End, -1)
	}
	known := commits.TrailOf(f.committed[l.Number])
	if _, ok := f.committed[l.Number]; !ok && len(l.Shards) > 1 {
		// With several shards, each worker commits the start of its partition only once all shards have
		// started. Until then, only the origins record the times that were found at the log's start.
		known = l.begun(states)
	}
	known = known.With(l.Trail)
	if known, err = l.sameRecords(ctx, l.Number, known, f.facts.Now); err != nil {
		return nil, err
	}
	*l.Trail = known.Within(f.facts.Log.End)
	return f, nil
}

// extend adds the periods that Redis lacks, as the process did at its start: Redis has rolled back to before
// that. It returns ErrAgain if it added periods, or if a schema has changed since the states were read.
func (l *Locator) extend(ctx context.Context, states []ledger.State) error {
	again := false
	for i := range states {
		st := states[i] // a copy: other workers share states
		added, err := l.Shards[i].Extend(ctx, &st, time.Duration(l.Terms.MaxFuture)*time.Millisecond)
		if err != nil {
			return err
		}
		again = again || st.Schema != states[i].Schema
		for _, a := range added {
			l.Log.Warn("a period was added again, which Redis had lost; its windows that start before since are incomplete until consumer rebuild counts them",
				zap.Stringer("period", a), zap.Time("since", time.UnixMilli(a.Since).UTC()))
		}
	}
	if again {
		return ErrAgain
	}
	return nil
}

// sameLog halts if the log has lost events that count, and stores the lineage of the records before the
// positions.
func (l *Locator) sameLog(ctx context.Context, f *located, at ledger.Positions) error {
	was, err := l.lineage(ctx, f.committed, f.states, at)
	if err == nil {
		was, err = l.upToDate(ctx, was, at.Lowest())
	}
	l.Trail.Lineage = was
	return err
}

// upToDate returns the lineage up to a position. The committed lineage may end earlier: an owner that died may
// have counted events without committing their offset.
func (l *Locator) upToDate(ctx context.Context, was trail.Lineage, position int64) (trail.Lineage, error) {
	if was.Offset >= position {
		return was, nil
	}
	log, err := l.Identities.Of(ctx, l.Partition)
	if err != nil || log.Topic == "" {
		return was, err
	}
	// The broker that reported the leader's epoch may be behind. Then the leader's log ends that epoch before
	// position.
	end, err := kafkaconn.EpochEnd(ctx, l.Kafka, l.Topic, l.Number, log.Epoch)
	if err != nil || end < position {
		return was, err
	}
	return trail.Lineage{Offset: position, Epoch: log.Epoch}, nil
}

// begun returns the trail that follows from the origin of the first shard that has an origin of the partition.
func (l *Locator) begun(states []ledger.State) (known trail.Trail) {
	for i := range states {
		if o, err := ledger.ParseOrigin(states[i].Origins[l.Field]); err == nil {
			known.Add(o.Offset, l.Terms.LatestBefore(o))
			known.Lineage = trail.Lineage{Offset: o.Offset, Epoch: o.Log.Epoch}
			break
		}
	}
	return known
}
