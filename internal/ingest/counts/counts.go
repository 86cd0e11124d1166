// Package counts counts what became of events, and the work that was done for them. Package metrics exports the
// counters.
package counts

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
)

// Stats counts events by their result, over all partitions since the start of the process. An event is counted
// once its result is final: with its piece if it was applied or the standings refused it, else with the last
// piece of its batch. If a batch is dropped halfway, only its applied pieces count; the worker that reads it
// again counts the rest.
//
//	consumed = applied + dead-lettered + late + early + skipped + repeated + duplicates
//
// The left side is not computed from the right: it counts the records that were read for a batch, when they are
// read, and becomes final with the batch. So a mismatch shows an event that was lost between reading and the
// ledger, or that was counted under two results.
//
// If the answer to a call is lost, for example because the process was killed, no process counts its events as
// applied: the next owner finds that they count, and counts them as repeated.
type Stats struct {
	together sync.Mutex // held when several counts of events change together, so that a Count adds up
	results
	work

	moves [len(moveCauses)]atomic.Int64

	batchEvents  histogram // records per swept batch
	pieceUpdates histogram // member-windows per piece
	applyTime    histogram // duration of the call of a piece, in ns
	standingTime histogram // time from the newest record of a batch to its last piece, in ns

	shards []*Shard // guarded by together; their counters are atomic
}

// results are the numbers of events by result.
type results struct {
	consumed atomic.Int64
	Applied  atomic.Int64
	Late     atomic.Int64
	Early    atomic.Int64 // before the first window of every period
	Skipped  atomic.Int64 // tombstones
	Repeated atomic.Int64 // read again after a takeover, and already counted
	// Duplicates counts events with the ids of an event at an earlier offset: see duplicates.Set.
	Duplicates atomic.Int64
	dead       [reasons]atomic.Int64
}

// work is what was done for the events.
type work struct {
	Records     atomic.Int64 // read records, including those of dropped batches
	Batches     atomic.Int64
	Pieces      atomic.Int64
	Updates     atomic.Int64 // member-windows written
	Retries     atomic.Int64 // retried calls to the standings
	KafkaTries  atomic.Int64 // retried calls to Kafka
	Throttled   atomic.Int64 // throttle time in the brokers' answers, in ns
	DeadLetters atomic.Int64 // records written; an event may have several
	OtherRules  atomic.Int64 // readings by the rules of another owner
	Disordered  atomic.Int64 // records that exceed the operator's limit on disorder
	FetchBytes  atomic.Int64
}

// Shard counts the calls to one shard. The sums over all shards are in Stats.
type Shard struct {
	Pieces, Updates, Retries atomic.Int64
	ApplyTime                atomic.Int64 // total duration of the calls of its pieces, in ns
}

// CountPiece counts a piece.
func (s *Shard) CountPiece(width int, took time.Duration) {
	s.Pieces.Add(1)
	s.Updates.Add(int64(width))
	s.ApplyTime.Add(int64(took))
}

// Shard returns the counters of a shard, and creates them if necessary.
func (s *Stats) Shard(shard int) *Shard {
	s.together.Lock()
	defer s.together.Unlock()
	for len(s.shards) <= shard {
		s.shards = append(s.shards, new(Shard))
	}
	return s.shards[shard]
}

// Shards returns the counters of all shards, in their order.
func (s *Stats) Shards() []*Shard {
	s.together.Lock()
	defer s.together.Unlock()
	return slices.Clone(s.shards)
}

const reasons = 7

// Dead returns the number of events that were dead-lettered for a reason.
func (s *Stats) Dead(r event.Reason) int64 { return s.dead[ReasonIndex(r)].Load() }

// DeadLettered returns the number of events that were dead-lettered for any reason.
func (s *Stats) DeadLettered() int64 {
	n := int64(0)
	for i := range s.dead {
		n += s.dead[i].Load()
	}
	return n
}

// Consumed returns the number of events whose result is final.
func (s *Stats) Consumed() int64 { return s.consumed.Load() }

// Count is the results of events at one moment; its fields add up.
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

// ReasonIndex returns the index of a reason in Tally.Dead.
func ReasonIndex(r event.Reason) int {
	for i, known := range event.Reasons() {
		if r == known {
			return i
		}
	}
	panic("ingest: no such reason: " + string(r))
}

// RefusalReasons maps the standings' refusals to the reasons of dead letters.
var RefusalReasons = [ledger.Reasons]event.Reason{ledger.Overflow: event.Overflow, ledger.WindowLimit: event.WindowLimit}

// Tally counts the results of a batch's events that have no member in the fold.
type Tally struct {
	Late, Early, Skipped, Repeated, Duplicates int64
	Dead                                       [reasons]int64
}

// Repeat returns a tally of the same number of events, all of them repeated.
func (t *Tally) Repeat() Tally {
	n := t.Late + t.Early + t.Skipped + t.Repeated + t.Duplicates
	for _, dead := range t.Dead {
		n += dead
	}
	return Tally{Repeated: n}
}

// CountPiece counts an applied piece and its events; refused are those of its events that were refused, by reason.
func (s *Stats) CountPiece(events int64, refused [ledger.Reasons]int64, width int, took time.Duration) {
	s.together.Lock()
	s.consumed.Add(events)
	for why, n := range refused {
		if n > 0 {
			s.dead[ReasonIndex(RefusalReasons[why])].Add(n)
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

// CountBatch counts a swept batch: all of its records except those that its pieces already counted, inPieces. newest
// is the time of the newest record, in ms; 0 if it has none.
func (s *Stats) CountBatch(t *Tally, records, inPieces, newest int64, now time.Time) {
	s.together.Lock()
	s.consumed.Add(records - inPieces)
	s.Late.Add(t.Late)
	s.Early.Add(t.Early)
	s.Skipped.Add(t.Skipped)
	s.Repeated.Add(t.Repeated)
	s.Duplicates.Add(t.Duplicates)
	for i, n := range t.Dead {
		s.dead[i].Add(n)
	}
	s.together.Unlock()
	s.Batches.Add(1)
	s.batchEvents.observe(eventBounds, records)
	if newest > 0 {
		s.standingTime.observe(standingBounds, int64(max(0, now.Sub(time.UnixMilli(newest)))))
	}
}

// BatchEvents returns the distribution of the number of records per swept batch.
func (s *Stats) BatchEvents() Distribution { return s.batchEvents.read(eventBounds) }

// PieceUpdates returns the distribution of the number of member-windows per applied piece.
func (s *Stats) PieceUpdates() Distribution { return s.pieceUpdates.read(updateBounds) }

// ApplyTime returns the distribution of the duration of calls that applied a piece, in ns.
func (s *Stats) ApplyTime() Distribution { return s.applyTime.read(applyBounds) }

// StandingTime returns the distribution of the time from the newest record of a batch until the batch counted,
// in ns, by the record's time and this machine's clock.
func (s *Stats) StandingTime() Distribution { return s.standingTime.read(standingBounds) }

// Moves returns how often the ledger moved for a cause.
func (s *Stats) Moves(cause string) int64 { return s.moves[slices.Index(moveCauses[:], cause)].Load() }

// AllMoves returns how often the ledger moved.
func (s *Stats) AllMoves() int64 {
	n := int64(0)
	for i := range s.moves {
		n += s.moves[i].Load()
	}
	return n
}

// CountMove counts a move of the ledger.
func (s *Stats) CountMove(cause string) { s.moves[slices.Index(moveCauses[:], cause)].Add(1) }

// The causes of a move, as far as the ledger shows them.
const (
	// MoveAdvanced: the ledger is further ahead. Another owner was or is active, or Redis executed a call of
	// this worker whose answer was lost.
	MoveAdvanced = "advanced"
	// MoveRolledBack: the ledger is further back. Redis has lost its newest writes, by a failover or because a
	// backup was restored.
	MoveRolledBack = "rolled_back"
	// MoveRebuilt: a rebuild has replaced the boards, and its ledger is further back.
	MoveRebuilt = "rebuilt"
	// MoveEmptied: the ledger has no position any more.
	MoveEmptied = "emptied"
	// MoveTorn: a piece was written only in part.
	MoveTorn = "torn"
	// MoveUnreadable: the ledger's text is not a position.
	MoveUnreadable = "unreadable"
)

var moveCauses = [...]string{MoveAdvanced, MoveRolledBack, MoveRebuilt, MoveEmptied, MoveTorn, MoveUnreadable}

// MoveCauses lists all causes.
func MoveCauses() []string { return moveCauses[:] }

// Units of time, in ns.
const (
	us  = int64(time.Microsecond)
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// Bounds of the histograms, chosen so that typical values are in the middle.
var (
	eventBounds  = []int64{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000}
	updateBounds = []int64{0, 1, 3, 10, 30, 100, 250, 500, 1000, 2000, 4000}
	applyBounds  = []int64{
		250 * us, 500 * us, 1 * ms, 2500 * us, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
		1 * sec, 2500 * ms, 5 * sec,
	}
	standingBounds = []int64{
		5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, 1 * sec, 2500 * ms, 5 * sec, 10 * sec, 30 * sec,
		60 * sec, 300 * sec, 900 * sec, 3600 * sec,
	}
)

// histogram counts values by size. It is safe for concurrent use, and its zero value is empty. Every call must
// pass the same bounds.
type histogram struct {
	counts [17]atomic.Int64 // values up to each bound, and those above the last bound
	sum    atomic.Int64
}

func (h *histogram) observe(bounds []int64, value int64) {
	i, _ := slices.BinarySearch(bounds, value) // a value equal to a bound counts as below it
	h.counts[i].Add(1)
	h.sum.Add(value)
}

// Distribution is a snapshot of a histogram.
type Distribution struct {
	Bounds []int64 // ascending; values up to each, bound included
	Counts []int64 // one per bound, cumulative
	Count  int64   // all values, including those above the last bound
	Sum    int64
}

func (h *histogram) read(bounds []int64) Distribution {
	d := Distribution{Bounds: bounds, Sum: h.sum.Load()}
	for i := range bounds {
		d.Count += h.counts[i].Load()
		d.Counts = append(d.Counts, d.Count)
	}
	d.Count += h.counts[len(bounds)].Load()
	return d
}
