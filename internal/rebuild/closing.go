package rebuild

import (
	"context"
	"math"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Coming close to a ledger that moves: rounds, each up to where the live ledger stands as
// it begins, get shorter and shorter as long as reading is faster than what comes. Once
// one is short, ingestion is held and what is left is about as short.
//
// Several shards go together first, each partition up to the live ledger that is furthest
// behind: so its log is read once. The others are a little further, a second or the batches
// that are being swept; that is read for each alone, in its turn.

// reading shows how far the rounds have come while they go on.
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

// ahead is what is to be read of each partition that all shards have which are left: from the
// first offset of any, to the live ledger that is furthest behind.
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

// near is how long the nth round may take that is followed by the hold. Where even short
// rounds take their time, on a Redis or a Kafka that is slow to answer, it is tried with
// what there is: under the hold nothing is added. In the end it is, however long they take:
// consumers that are as fast as the rebuild would have it go on for ever, and each hold, if
// it isn't in time for a swap, brings it closer by what it lasts.
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

// rounds goes round by round until one was short, and says so if that takes long. The last one
// is after prepare, if that is given.
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

// close brings one shard close. What both sides list is read before the last round, so that
// little of that is left for the hold.
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

// close brings all shards close that are left.
func (a *attempt) close(ctx context.Context) error {
	return a.rounds(a.Watch.notef, func() error { return a.round(ctx) }, nil)
}

// round reads on for all shards that are left.
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
	return a.reads.To(ctx, ingest.AllShards, limits)
}

// lowest is up to where a partition is read for several shards at once: where all live ledgers
// have every event. There is none if each shard is in its sweep already.
func lowest(limits []ledger.Position) (ledger.Position, bool) {
	if len(limits) == 0 {
		return ledger.Position{}, false
	}
	return ledger.At(ledger.Positions(limits).Lowest()), true
}
