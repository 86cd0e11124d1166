package ingest

import (
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/kafkaconn/fetch"
)

// Limits that follow from fold_memory. A turn is a third of it. With one turn a partition must be able to read every
// batch that isn't passed over: otherwise it would halt at a batch that no restart gets past.

const (
	// minCodec is the least limit of a codec's memory, in bytes. lz4 holds 8 MiB and 16 KiB with
	// blocks of 4 MiB, those of kafka-go's own writers; zstd holds a little more at level 19.
	minCodec = 9 << 20
	// besideEvent is what a record batch with one event takes beside the event, in bytes:
	// its key and headers, the batch's own header and the response's.
	besideEvent = 64 << 10
	// leastBatch is what a batch takes that has folded one event, in bytes, and more.
	leastBatch = 256 << 10
)

// LargestBatch is the largest record batch, in bytes, that fold_memory has room for. The records
// of a larger one are dead letters.
func LargestBatch(foldMemory int64) int64 { return foldMemory / 16 }

// LeastMemory returns the smallest fold_memory, in bytes, a multiple of 1 MiB, with which one turn suffices for every
// batch that isn't passed over, and no batch of one event of the given size is passed over.
func LeastMemory(maxEventBytes int64) int64 {
	record := maxEventBytes + besideEvent
	for least := int64(1 << 20); ; least += 1 << 20 {
		if LargestBatch(least) >= record && turnOf(least) >= turnTakes(least, maxEventBytes, record) {
			return least
		}
	}
}

// turnOf returns the memory of one partition's turn, in bytes.
func turnOf(foldMemory int64) int64 { return foldMemory / 3 }

// turnTakes returns the most memory, in bytes, that reading a batch takes until an event of it is folded. record is
// the length of the batch's longest record.
func turnTakes(foldMemory, maxEventBytes, record int64) int64 {
	window := record + record + record/4 + 8<<10 // as it grows from one that was a little too small
	return LargestBatch(foldMemory) + fetch.Beside + window + LargestCodec(foldMemory, maxEventBytes) + leastBatch
}

// longestRecord returns the length of the longest record that is read, in bytes. It is as long as a turn allows, so that
// dead letters contain the values of events that are too long.
func longestRecord(foldMemory, maxEventBytes int64) int64 {
	batch := LargestBatch(foldMemory)
	room := (turnOf(foldMemory) - turnTakes(foldMemory, maxEventBytes, 0)) / 9 * 4 // see window
	return min(batch, max(room, maxEventBytes+besideEvent))
}

// eventCodec is the most that a codec holds for a batch of one event: snappy in a single
// block has it twice as it came, where it doesn't compress, and once as it was; zstd has
// the last and its tables.
func eventCodec(maxEventBytes int64) int64 { return 3*(maxEventBytes+besideEvent) + 64<<10 }

// LargestCodec is the most that a codec may hold, in bytes. The records of a batch that takes
// more to decompress are dead letters.
func LargestCodec(foldMemory, maxEventBytes int64) int64 {
	return max(LargestBatch(foldMemory), minCodec, eventCodec(maxEventBytes))
}

// room is what reading may take of the process's memory, of which partitions share one
// budget. The budget guards itself; the rest doesn't change.
type room struct {
	memory    *memory.Budget
	maxBatch  int64 // bytes: the largest batch whose records are read
	maxRecord int64 // bytes: the longest record that is read
	maxCodec  int64 // bytes: the most that a codec may hold
}

// maxResponse is the most that is held of a response, in bytes.
func (r *room) maxResponse() int64 { return r.maxBatch + fetch.Beside }

func newRoom(foldMemory, maxEventBytes int64) room {
	r := room{
		maxBatch: LargestBatch(foldMemory), maxRecord: longestRecord(foldMemory, maxEventBytes), maxCodec: LargestCodec(foldMemory, maxEventBytes),
	}
	// A tenth is for what was let go of and isn't collected yet. What a batch
	// is read again with, outside of the budget, is set aside.
	r.memory = memory.New(foldMemory*9/10-r.maxResponse(), turnOf(foldMemory))
	return r
}
