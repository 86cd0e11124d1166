package ingest

import (
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
//	consumed = applied + dead-lettered + late + skipped + repeated
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
	Skipped  atomic.Int64 // tombstones
	Repeated atomic.Int64 // read again after a takeover, and already in
	dead     [reasons]atomic.Int64

	Records     atomic.Int64 // read, those of dropped batches too
	Batches     atomic.Int64
	Pieces      atomic.Int64
	Updates     atomic.Int64 // member-windows written
	Retries     atomic.Int64 // calls to the standings tried again
	KafkaTries  atomic.Int64 // calls to Kafka tried again
	Throttled   atomic.Int64 // ns that brokers asked to be left alone for
	DeadLetters atomic.Int64 // records written; an event may have several
	Disordered  atomic.Int64 // records that break the operator's word on their times
	FetchBytes  atomic.Int64
	moves       [len(moveCauses)]atomic.Int64

	batchEvents  histogram // records of a batch that is through
	pieceUpdates histogram // member-windows of a piece
	applyTime    histogram // ns that the call of a piece took
	standingTime histogram // ns from the newest record of a batch to its last piece
}

const reasons = 6

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
	Consumed, Applied, Late, Skipped, Repeated int64
	Dead                                       map[event.Reason]int64
}

// Count reads the counts of events together.
func (s *Stats) Count() Count {
	s.together.Lock()
	defer s.together.Unlock()
	c := Count{
		Consumed: s.consumed.Load(), Applied: s.Applied.Load(), Late: s.Late.Load(),
		Skipped: s.Skipped.Load(), Repeated: s.Repeated.Load(), Dead: map[event.Reason]int64{},
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

// tally is what became of a batch's events that have no member in the fold.
type tally struct {
	late, skipped, repeated int64
	dead                    [reasons]int64
}

// applied counts a piece of so many events, and of those the refused ones by reason.
func (s *Stats) applied(events int64, refused [ledger.Reasons]int64, width int, took time.Duration) {
	s.together.Lock()
	s.consumed.Add(events)
	for why, n := range refused {
		if n > 0 {
			s.dead[reasonIndex(refusals[why].reason)].Add(n)
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
// its pieces, which had so many events.
func (s *Stats) swept(b *batch, inPieces int64, now time.Time) {
	s.together.Lock()
	s.consumed.Add(b.records - inPieces)
	s.Late.Add(b.late)
	s.Skipped.Add(b.skipped)
	s.Repeated.Add(b.repeated)
	for i, n := range b.dead {
		s.dead[i].Add(n)
	}
	s.together.Unlock()
	s.Batches.Add(1)
	s.batchEvents.observe(eventBounds, b.records)
	if b.newest > 0 {
		s.standingTime.observe(standingBounds, int64(max(0, now.Sub(time.UnixMilli(b.newest)))))
	}
}
