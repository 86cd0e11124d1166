package ingest

import (
	"sync/atomic"

	"github.com/standings/standings/internal/ingest/event"
)

// Stats counts events by what became of them, over all partitions since the
// start of the process. An event is counted once that is final: with its piece
// if it was applied or overflowed, else with the last piece of its batch. A batch
// that is dropped halfway counts no more than its pieces that are in; whoever
// reads it again counts the rest.
//
//	consumed = applied + dead-lettered + late + skipped + repeated
type Stats struct {
	Applied  atomic.Int64
	Late     atomic.Int64
	Skipped  atomic.Int64 // tombstones
	Repeated atomic.Int64 // read again after a takeover, and already in
	dead     [reasons]atomic.Int64

	Batches     atomic.Int64
	Pieces      atomic.Int64
	Updates     atomic.Int64 // member-windows written
	Moves       atomic.Int64 // the ledger was found elsewhere
	Retries     atomic.Int64 // calls to the standings sent again
	DeadLetters atomic.Int64 // records written; an event may have several
	FetchBytes  atomic.Int64
}

const reasons = 5

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
func (s *Stats) Consumed() int64 {
	return s.Applied.Load() + s.DeadLettered() + s.Late.Load() + s.Skipped.Load() + s.Repeated.Load()
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

func (s *Stats) add(t *tally) {
	s.Late.Add(t.late)
	s.Skipped.Add(t.skipped)
	s.Repeated.Add(t.repeated)
	for i, n := range t.dead {
		s.dead[i].Add(n)
	}
}
