package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
)

// confirmFor is how long a log has to end before the ledger's position until
// that is believed: a leader that was just elected may not know its end yet.
const confirmFor = 10 * time.Second

// locate finds the position that the worker goes on from, as the start table
// says, and has it written and committed before anything is read. It returns
// errAgain where it has to be called again.
func (w *worker) locate(ctx context.Context) (ledger.Position, error) {
	past := w.pastSince
	w.pastSince = time.Time{} // what isn't seen now may be of a new leader afterwards
	state, err := w.states.get(ctx)
	if err != nil {
		return ledger.Position{}, err
	}
	w.compare(state.Ledger[w.field], state.Workers[w.field])
	if err := w.Standings.CheckSchema(state.Schema); err != nil {
		return ledger.Position{}, otherSchema(err)
	}
	f := factsOf(state, w.topic, w.partition)
	w.found(f.found)
	w.refill.Store(state.Refills[w.field])
	partitions, err := w.partitions(ctx)
	if err != nil {
		return ledger.Position{}, err
	}
	asked := upTo(partitions)
	if f.found != "" || f.others {
		asked = []int{w.partition} // of hundreds of workers each asks for its own
	}
	committed, err := w.kafka.committed(ctx, w.topic, asked...)
	if err != nil {
		return ledger.Position{}, err
	}
	f.committed = len(committed) > 0
	all, err := w.kafka.bounds(ctx, w.topic, w.partition)
	if err != nil {
		return ledger.Position{}, err
	}
	f.log = all[w.partition]
	if found, err := ledger.Parse(f.found); err == nil {
		w.lag.located(found.From, f.log.end)
	} else {
		w.lag.ends(f.log.end)
	}

	known := committed[w.partition].trail()
	known = known.with(&w.trail)
	w.trail = known.within(f.log.end)
	d, err := decide(f, w.OnGap)
	if err != nil {
		return ledger.Position{}, err
	}
	switch d.step {
	case goOn:
		w.trail.reach(d.at.From, state.Now.UnixMilli())
		if _, ok := committed[w.partition]; !ok {
			if err := w.commits.now(ctx, map[int]progress{w.partition: {d.at.From, w.trail}}, w.topic); err != nil {
				return d.at, err
			}
		}
		// Whoever was here last may not have come to commit, or something else may be
		// pending: where no event follows, monitors would show a lag for good.
		w.commits.at(w.topic, w.partition, d.at.From, w.trail)
		return d.at, nil
	case confirm:
		w.pastSince = past
		return ledger.Position{}, w.confirmTruncated(d.at, f.log)
	case skip:
		return d.at, w.skip(ctx, f, d.at, state.Clock)
	case join:
		return ledger.At(f.log.start), w.join(ctx, f, state.Clock)
	default:
		return ledger.Position{}, w.beginOnce(ctx, d.step, partitions)
	}
}

// factsOf is what Redis says for the decision about a partition.
func factsOf(state ledger.State, topic string, partition int) facts {
	field := ledger.Field(topic, partition)
	f := facts{topic: topic, partition: partition, found: state.Ledger[field], ledger: len(state.Ledger), windows: state.Windows, schemaGone: state.Schema == ""}
	for other := range state.Ledger {
		f.others = f.others || other != field && topicOf(other) == topic
	}
	return f
}

// beginOnce has one worker of the process resolve where a topic begins: it asks
// about every partition, and so would everyone.
func (w *worker) beginOnce(ctx context.Context, s step, partitions int) error {
	select {
	case w.starting <- struct{}{}:
		defer func() { <-w.starting }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // the one before may have let go because of that
		return context.Cause(ctx)
	}
	state, err := w.states.get(ctx)
	if err != nil {
		return err
	}
	for field := range state.Ledger {
		if topicOf(field) == w.topic {
			return errAgain // another has been here
		}
	}
	return w.begin(ctx, s, partitions, state.Clock)
}

// errAgain says that the start has to be looked at again, at once or after a wait.
var errAgain = errors.New("the ledger has to be read again")

// confirmTruncated waits until a log that ends before the position is believed.
func (w *worker) confirmTruncated(at ledger.Position, log bounds) error {
	if w.pastSince.IsZero() {
		w.pastSince = time.Now()
	}
	if time.Since(w.pastSince) < confirmFor {
		return fmt.Errorf("%s ends at offset %d, before the ledger's position %v", w.field, log.end, at)
	}
	return truncated(w.field, at, log)
}

// originOf is the origin of a partition that is read from its log's start, which the trail
// knows of from then on.
func (w *worker) originOf(ctx context.Context, log bounds, clock clock) (ledger.Origin, error) {
	if log.start == 0 {
		return ledger.Origin{}, nil
	}
	// Outside of the memory budget: one at a time. A gap may be all partitions'.
	select {
	case w.starting <- struct{}{}:
		defer func() { <-w.starting }()
	case <-ctx.Done():
		return ledger.Origin{}, context.Cause(ctx)
	}
	first, err := w.firstRecord(ctx, w.partition, log)
	if err != nil {
		return ledger.Origin{}, err
	}
	j := w.judgeAt(clock())
	latest, _ := j.latest(log.start, &w.trail, first)
	w.trail.add(log.start, latest)
	return j.origin(log.start, latest), nil
}

// skip moves the ledger over a gap and notes in the origin that what starts
// before is partial.
func (w *worker) skip(ctx context.Context, f facts, at ledger.Position, clock clock) error {
	origin, err := w.originOf(ctx, f.log, clock)
	if err != nil {
		return err
	}
	w.log.Warn("events are gone from the log: going on with what is left, as on_gap says; windows that start before are partial",
		zap.String("ledger", f.found), zap.Int64("log_start", f.log.start), zap.Time("partial_before", time.UnixMilli(origin.Time)))
	b := ledger.Beginning{Topic: w.topic, Partition: w.partition, Found: f.found, At: at, Origin: &origin}
	return w.set(ctx, map[int]progress{w.partition: {at.From, w.trail}}, b)
}

// join starts a partition that was added to a topic under way: at offset 0.
func (w *worker) join(ctx context.Context, f facts, clock clock) error {
	origin, err := w.originOf(ctx, f.log, clock)
	if err != nil {
		return err
	}
	w.log.Info("the partition was added", zap.Int64("from", f.log.start))
	b := ledger.Beginning{Topic: w.topic, Partition: w.partition, Beside: true, At: ledger.At(f.log.start), Origin: &origin}
	return w.set(ctx, map[int]progress{w.partition: {f.log.start, w.trail}}, b)
}

// begin has all partitions of the topic start where that comes to.
func (w *worker) begin(ctx context.Context, s step, partitions int, clock clock) error {
	committed, err := w.kafka.committed(ctx, w.topic, upTo(partitions)...)
	if err != nil {
		return err
	}
	set, trails, err := w.resolveAll(ctx, s, partitions, committed, clock)
	if err != nil {
		return err
	}
	offsets, at, partial := map[int]progress{}, map[int]int64{}, map[int]time.Time{}
	for i, b := range set {
		offsets[b.Partition] = progress{b.At.From, trails[i]}
		at[b.Partition] = b.At.From
		if b.Origin.Time > 0 {
			partial[b.Partition] = time.UnixMilli(b.Origin.Time).UTC()
		}
	}
	if s == recoverAll {
		w.log.Warn("Redis was lost: reading again from the first offset that can hold an event of a live window; windows that start before partial_before may lack events",
			zap.Any("offsets", at), zap.Any("partial_before", partial))
	} else {
		w.log.Info("first start of the topic", zap.Any("offsets", at), zap.Any("partial_before", partial))
	}
	if err := w.set(ctx, offsets, set...); err != nil {
		return err
	}
	return errAgain // and read what is written there now
}

// resolveAll resolves where all partitions of the topic start, and what their trails know
// then. Whoever comes first does it for all: partitions that were resolved one by one,
// hours apart, would start at different times.
func (w *worker) resolveAll(ctx context.Context, s step, partitions int, committed map[int]Commit, clock clock) ([]ledger.Beginning, []trail, error) {
	from, asked := w.Start.From, max(0, w.Start.Time.UnixMilli())
	if s == recoverAll {
		from = FromWindow
	}
	if from == FromWindow {
		live, err := liveFrom(w.Rules.Calendar, w.Retention, clock())
		if err != nil {
			return nil, nil, err
		}
		asked = max(0, live-w.Events.MaxFuture)
	}
	all, err := w.beginnings(ctx, from, partitions, committed, asked)
	if err != nil {
		return nil, nil, err
	}
	j := w.judgeAt(clock())
	var set []ledger.Beginning
	var trails []trail
	for p := range all {
		b := &all[p]
		if s == recoverAll && !j.reaches(b, asked) && w.OnGap == GapHalts {
			return nil, nil, w.lostBoth(p, b, j)
		}
		at, latest := j.resolve(from, b, asked)
		origin := j.origin(at, latest)
		begins := ledger.Beginning{Topic: w.topic, Partition: p, At: ledger.At(at), Origin: &origin}
		if s == recoverAll {
			// What was counted before lies below the log's end; where a leader that was just
			// elected doesn't know that yet, below what was committed, but for the last moment.
			begins.Refill = max(b.log.end, committed[p].Offset)
		}
		set = append(set, begins)
		b.trail.add(at, latest)
		trails = append(trails, b.trail)
	}
	return set, trails, nil
}

// lostBoth is the halt where Redis was lost, and the log may lack what it had.
func (w *worker) lostBoth(partition int, b *beginning, j judge) *Halt {
	which := "of any window" // the moment of looking would be another text every time
	if latest, known := j.latest(b.log.start, &b.trail, b.first); known {
		before := time.UnixMilli(j.origin(b.log.start, latest).Time)
		which = "of windows that still live and start before " + before.UTC().Format(time.RFC3339)
	}
	return &Halt{HaltGap,
		fmt.Sprintf("Redis has nothing of %s, which this group has read before, and the log of %s/%d begins only at offset %d: what was deleted may hold events %s",
			w.topic, w.topic, partition, b.log.start, which),
		"restore a backup of Redis, or set on_gap: continue, which counts what the log still has and shows those windows as incomplete"}
}

// set writes where partitions start, and commits it.
func (w *worker) set(ctx context.Context, offsets map[int]progress, all ...ledger.Beginning) error {
	begun, err := w.Standings.Begin(ctx, all)
	if err != nil {
		return err
	}
	switch begun {
	case ledger.Began:
		return w.commits.now(ctx, offsets, w.topic)
	case ledger.Orphaned:
		return fmt.Errorf("boards appeared without a ledger: %w", errAgain)
	case ledger.HeldUp:
		return errHeld
	default:
		return errAgain
	}
}

// beginnings asks Kafka about all partitions of the topic.
func (w *worker) beginnings(ctx context.Context, from StartFrom, partitions int, committed map[int]Commit, asked int64) ([]beginning, error) {
	var logs map[int]bounds
	var since map[int]int64
	var err error
	if from == FromWindow || from == FromTime {
		logs, since, err = w.kafka.boundsSince(ctx, w.topic, time.UnixMilli(asked), upTo(partitions)...)
	} else {
		logs, err = w.kafka.bounds(ctx, w.topic, upTo(partitions)...)
	}
	if err != nil {
		return nil, err
	}
	all := make([]beginning, partitions)
	for _, p := range slices.Sorted(maps.Keys(logs)) {
		known := committed[p].trail()
		b := beginning{log: logs[p], since: -1, trail: known.within(logs[p].end)}
		if at, ok := since[p]; ok {
			b.since = at
		}
		if b.first, err = w.firstRecord(ctx, p, b.log); err != nil {
			return nil, err
		}
		all[p] = b
	}
	return all, nil
}
