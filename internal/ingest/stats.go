package ingest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
)

// Stats counts events by what became of them, over all partitions since the
// start of the process. An event is counted once that is final: with its piece
// if it was applied or refused by the standings, else with the last piece of its batch. A batch
// that is dropped halfway counts no more than its pieces that are in; whoever
// reads it again counts the rest.
//
//	consumed = applied + dead-lettered + late + early + skipped + repeated + duplicates
//
// The left side is no sum of the right: it counts the records that were read for a
// batch, where they are read, and becomes final with the batch. So an event that got
// lost between reading and the ledger, or was counted under two results, shows.
//
// The events of a call whose answer was never learned, of a process that was killed
// for instance, are in nobody's applied: whoever comes next finds them in, and counts
// them as repeated.
type Stats struct {
	together sync.Mutex // held where several counts of events change, so that a Count adds up

	consumed atomic.Int64
	Applied  atomic.Int64
	Late     atomic.Int64
	Early    atomic.Int64 // before the first window of every period
	Skipped  atomic.Int64 // tombstones
	Repeated atomic.Int64 // read again after a takeover, and already in
	// Duplicates have the ids of an event at one of the offsets before: see duplicates.Set.
	Duplicates atomic.Int64
	dead       [reasons]atomic.Int64

	Records     atomic.Int64 // read, those of dropped batches too
	Batches     atomic.Int64
	Pieces      atomic.Int64
	Updates     atomic.Int64 // member-windows written
	Retries     atomic.Int64 // calls to the standings tried again
	KafkaTries  atomic.Int64 // calls to Kafka tried again
	Throttled   atomic.Int64 // ns of throttle time that brokers answered with
	DeadLetters atomic.Int64 // records written; an event may have several
	OtherRules  atomic.Int64 // readings by the rules of another owner
	Disordered  atomic.Int64 // records that break the operator's word on their times
	FetchBytes  atomic.Int64
	moves       [len(moveCauses)]atomic.Int64

	batchEvents  histogram // records of a batch that is through
	pieceUpdates histogram // member-windows of a piece
	applyTime    histogram // ns that the call of a piece took
	standingTime histogram // ns from the newest record of a batch to its last piece

	shards []*ShardStats // guarded by together; what they count isn't
}

// ShardStats counts the calls to one shard. Summed over all shards they are the same in Stats.
type ShardStats struct {
	Pieces, Updates, Retries atomic.Int64
	ApplyTime                atomic.Int64 // ns that the calls of its pieces took
}

// applied counts a piece.
func (s *ShardStats) applied(width int, took time.Duration) {
	s.Pieces.Add(1)
	s.Updates.Add(int64(width))
	s.ApplyTime.Add(int64(took))
}

// Shard counts the calls to a shard.
func (s *Stats) Shard(shard int) *ShardStats {
	s.together.Lock()
	defer s.together.Unlock()
	for len(s.shards) <= shard {
		s.shards = append(s.shards, new(ShardStats))
	}
	return s.shards[shard]
}

// Shards are the counts of all shards, in their order.
func (s *Stats) Shards() []*ShardStats {
	s.together.Lock()
	defer s.together.Unlock()
	return slices.Clone(s.shards)
}

const reasons = 7

// Dead is the number of events of a reason that were dead-lettered.
func (s *Stats) Dead(r event.Reason) int64 { return s.dead[reasonIndex(r)].Load() }

// DeadLettered is the number of events that were dead-lettered, for all reasons.
func (s *Stats) DeadLettered() int64 {
	n := int64(0)
	for i := range s.dead {
		n += s.dead[i].Load()
	}
	return n
}

// Consumed is the number of events whose end is known.
func (s *Stats) Consumed() int64 { return s.consumed.Load() }

// Count is what became of events as of one moment: it adds up.
type Count struct {
	Consumed, Applied, Late, Early, Skipped, Repeated, Duplicates int64
	Dead                                                          map[event.Reason]int64
}

// Count reads the counts of events together.
func (s *Stats) Count() Count {
	s.together.Lock()
	defer s.together.Unlock()
	c := Count{
		Consumed: s.consumed.Load(), Applied: s.Applied.Load(), Late: s.Late.Load(), Early: s.Early.Load(),
		Skipped: s.Skipped.Load(), Repeated: s.Repeated.Load(), Duplicates: s.Duplicates.Load(), Dead: map[event.Reason]int64{},
	}
	for _, r := range event.Reasons() {
		c.Dead[r] = s.Dead(r)
	}
	return c
}

func reasonIndex(r event.Reason) int {
	for i, known := range event.Reasons() {
		if r == known {
			return i
		}
	}
	panic("ingest: no such reason: " + string(r))
}

// refusalReasons are the reasons of dead letters of members who are refused.
var refusalReasons = [ledger.Reasons]event.Reason{ledger.Overflow: event.Overflow, ledger.WindowLimit: event.WindowLimit}

// tally is what became of a batch's events that have no member in the fold.
type tally struct {
	late, early, skipped, repeated, duplicates int64
	dead                                       [reasons]int64
}

// repeat is the tally if all of its events were counted before.
func (t *tally) repeat() tally {
	n := t.late + t.early + t.skipped + t.repeated + t.duplicates
	for _, dead := range t.dead {
		n += dead
	}
	return tally{repeated: n}
}

// applied counts a piece of so many events, and of those the refused ones by reason.
func (s *Stats) applied(events int64, refused [ledger.Reasons]int64, width int, took time.Duration) {
	s.together.Lock()
	s.consumed.Add(events)
	for why, n := range refused {
		if n > 0 {
			s.dead[reasonIndex(refusalReasons[why])].Add(n)
			events -= n
		}
	}
	s.Applied.Add(events)
	s.together.Unlock()
	s.Pieces.Add(1)
	s.Updates.Add(int64(width))
	s.pieceUpdates.observe(updateBounds, int64(width))
	s.applyTime.observe(applyBounds, int64(took))
}

// swept counts a batch that is through: all of its records that weren't consumed with
// its pieces, which had so many events. The newest record's time is in ms; 0 without one.
func (s *Stats) swept(t *tally, records, inPieces, newest int64, now time.Time) {
	s.together.Lock()
	s.consumed.Add(records - inPieces)
	s.Late.Add(t.late)
	s.Early.Add(t.early)
	s.Skipped.Add(t.skipped)
	s.Repeated.Add(t.repeated)
	s.Duplicates.Add(t.duplicates)
	for i, n := range t.dead {
		s.dead[i].Add(n)
	}
	s.together.Unlock()
	s.Batches.Add(1)
	s.batchEvents.observe(eventBounds, records)
	if newest > 0 {
		s.standingTime.observe(standingBounds, int64(max(0, now.Sub(time.UnixMilli(newest)))))
	}
}

// BatchEvents is how many events batches had that were swept to their end.
func (s *Stats) BatchEvents() Distribution { return s.batchEvents.read(eventBounds) }

// PieceUpdates is how many member-windows pieces had that were applied.
func (s *Stats) PieceUpdates() Distribution { return s.pieceUpdates.read(updateBounds) }

// ApplyTime is how long the calls took that applied a piece, in ns.
func (s *Stats) ApplyTime() Distribution { return s.applyTime.read(applyBounds) }

// StandingTime is how long it took from the newest record of a batch until it
// counted, in ns, by the record's time and this machine's clock.
func (s *Stats) StandingTime() Distribution { return s.standingTime.read(standingBounds) }

// Moves is how often the ledger was found elsewhere, for a cause.
func (s *Stats) Moves(cause string) int64 {
	for i, known := range moveCauses {
		if cause == known {
			return s.moves[i].Load()
		}
	}
	panic("ingest: no such cause of a move: " + cause)
}

// AllMoves is how often the ledger was found elsewhere.
func (s *Stats) AllMoves() int64 {
	n := int64(0)
	for i := range s.moves {
		n += s.moves[i].Load()
	}
	return n
}

// moved counts one and returns its cause. rebuilt: the boards are refilled since a rebuild.
func (s *Stats) moved(err error, rebuilt bool) (cause string) {
	cause = MoveEmptied // of the schema alone
	if e, ok := errors.AsType[*movedError](err); ok {
		cause = e.cause()
	}
	if cause == MoveRolledBack && rebuilt {
		cause = MoveRebuilt
	}
	for i, known := range moveCauses {
		if cause == known {
			s.moves[i].Add(1)
		}
	}
	return cause
}

// Of times, in ns.
const (
	us  = int64(time.Microsecond)
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// The bounds, so that the usual lies in the middle.
var (
	eventBounds  = []int64{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000}
	updateBounds = []int64{0, 1, 3, 10, 30, 100, 250, 500, 1000, 2000, maxWidth}
	applyBounds  = []int64{
		250 * us, 500 * us, 1 * ms, 2500 * us, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
		1 * sec, 2500 * ms, 5 * sec,
	}
	standingBounds = []int64{
		5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, 1 * sec, 2500 * ms, 5 * sec, 10 * sec, 30 * sec,
		60 * sec, 300 * sec, 900 * sec, 3600 * sec,
	}
)
