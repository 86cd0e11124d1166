package rebuild

import (
	"context"
	"math"
	"time"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
)

// A rebuild approaches the moving live ledger in rounds. Each round reads up to the live ledger's position
// at its start. Rounds get shorter as long as reading is faster than the incoming events. After a short
// round ingestion is held, and the rest takes about as long as that round.
//
// If there are several shards they are first read together, each partition up to the live ledger that is
// furthest behind, so that its log is read once. The other live ledgers are a second or a batch further;
// that part is read for each shard alone.

// reading runs the rounds, and reports their progress.
func (a *attempt) reading(ctx context.Context) error {
	if a.Watch.Reading != nil {
		begun, until := a.ahead()
		total := int64(0)
		for field, at := range begun {
			total += until[field] - at
		}
		ended := a.Watch.Reading(total, func() int64 {
			n := int64(0)
			for field, at := range begun {
				n += min(a.reads.Progress(field, at), until[field]-at)
			}
			return n
		})
		defer ended()
	}
	if len(a.parts) == 1 {
		return a.parts[0].close(ctx)
	}
	return a.close(ctx)
}

// ahead returns, for each partition that all remaining shards have, the range to read: from the lowest
// start on any shard to the live ledger that is furthest behind.
func (a *attempt) ahead() (begun, until map[string]int64) {
	begun, until = map[string]int64{}, map[string]int64{}
	left := a.left()
	for field := range left[0].begun {
		from, to, all := int64(math.MaxInt64), int64(math.MaxInt64), true
		for _, p := range left {
			at, ok := p.begun[field]
			all, from, to = all && ok, min(from, at), min(to, p.until[field])
		}
		if all {
			begun[field], until[field] = from, to
		}
	}
	return begun, until
}

// near returns how long the nth round may take to be followed by the hold. The limit grows with n: if Redis or
// Kafka is slow, even short rounds take long, but under the hold no events are added. In the end any duration
// is accepted, since consumers as fast as the rebuild would make it continue forever. A hold that is too short
// for a swap still brings the rebuild closer to the live ledger.
func (j *Job) near(n int) time.Duration {
	outrun := j.outrun()
	switch {
	case n > 3*outrun:
		return math.MaxInt64
	case n > 2*outrun:
		return j.MaxHold
	case n > outrun:
		return j.MaxHold / 2
	}
	return min(j.MaxHold/4, 300*time.Millisecond)
}

// rounds calls round until one is short, and notes if that takes many rounds. If prepare is not nil it is
// called after the first short round, and another round follows.
func (j *Job) rounds(note func(string, ...any), round, prepare func() error) error {
	for n := 1; ; n++ {
		began := time.Now()
		if err := round(); err != nil {
			return err
		}
		if time.Since(began) <= j.near(n) {
			if prepare == nil {
				return nil
			}
			if err := prepare(); err != nil {
				return err
			}
			prepare = nil
			continue
		}
		if n%j.outrun() == 0 {
			note("the consumers are about as fast as this rebuild, or servers are slow to answer: %d rounds, and it isn't close yet", n)
		}
	}
}

// close reads one shard up to near its live ledger. It reads both sides' listings before the last round, so
// that little of that remains for the hold.
func (p *part) close(ctx context.Context) error {
	return p.rounds(p.notef, func() error {
		limits, err := p.limits(ctx, false)
		if err != nil {
			return err
		}
		return p.reads.To(ctx, p.shard, limits)
	}, func() error {
		return shadow.Retry(ctx, func() error { return p.Prepare(ctx) })
	})
}

// close reads all remaining shards up to near their live ledgers.
func (a *attempt) close(ctx context.Context) error {
	return a.rounds(a.Watch.notef, func() error { return a.round(ctx) }, nil)
}

// round reads one round for all remaining shards.
func (a *attempt) round(ctx context.Context) error {
	left := a.left()
	all := make([]map[string]ledger.Position, len(a.parts))
	err := each(left, func(p *part) (err error) { all[p.shard], err = p.limits(ctx, false); return err })
	if err != nil {
		return err
	}
	begun, _ := a.ahead()
	limits := map[string]ledger.Position{}
	for field := range begun {
		var some []ledger.Position
		for _, p := range left {
			if at, ok := all[p.shard][field]; ok {
				some = append(some, at)
			}
		}
		if at, ok := lowest(some); ok {
			limits[field] = at
		}
	}
	return a.reads.To(ctx, replay.AllShards, limits)
}

// lowest returns the offset up to which a partition is read for several shards together: below it, all live
// ledgers have every event. It returns false if no limit is given.
func lowest(limits []ledger.Position) (ledger.Position, bool) {
	if len(limits) == 0 {
		return ledger.Position{}, false
	}
	return ledger.At(ledger.Positions(limits).Lowest()), true
}
