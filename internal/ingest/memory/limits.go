package memory

import (
	"github.com/standings/standings/internal/kafkaconn/fetch"
)

// These limits follow from fold_memory. A turn is a third of it. One turn must suffice for a partition to read
// every batch that it doesn't pass over; otherwise the partition would halt at a batch, and no restart would
// help.

const (
	// minCodec is the smallest limit of a codec's memory, in bytes. lz4 holds 8 MiB and 16 KiB for blocks of 4
	// MiB, the block size of kafka-go's own writers; zstd holds a little more at level 19.
	minCodec = 9 << 20
	// besideEvent is the size of a record batch with one event, in bytes, without the event itself: key,
	// headers, and the headers of the batch and of the response.
	besideEvent = 64 << 10
	// leastBatch is an upper bound for the memory of a fold batch with one event, in bytes.
	leastBatch = 256 << 10
)

// LargestBatch returns the size of the largest record batch, in bytes, that fits in fold_memory. The records of
// a larger batch become dead letters.
func LargestBatch(foldMemory int64) int64 { return foldMemory / 16 }

// LeastMemory returns the smallest fold_memory, in bytes, a multiple of 1 MiB, with which one turn suffices for
// every batch that isn't passed over, and no batch with a single event of at most maxEventBytes is passed over.
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

// turnTakes returns the maximum memory, in bytes, that reading a batch needs until one of its events is folded.
// record is the length of the batch's longest record.
func turnTakes(foldMemory, maxEventBytes, record int64) int64 {
	window := record + record + record/4 + 8<<10 // as it grows from a window that was slightly too small
	return LargestBatch(foldMemory) + fetch.Beside + window + LargestCodec(foldMemory, maxEventBytes) + leastBatch
}

// longestRecord returns the length of the longest record that is read, in bytes. It is as large as a turn
// allows, so that the dead letters of oversized events contain their values.
func longestRecord(foldMemory, maxEventBytes int64) int64 {
	batch := LargestBatch(foldMemory)
	room := (turnOf(foldMemory) - turnTakes(foldMemory, maxEventBytes, 0)) / 9 * 4 // see window in turnTakes
	return min(batch, max(room, maxEventBytes+besideEvent))
}

// EventCodec returns the maximum memory that a codec needs for a batch with one event, in bytes. snappy in a
// single block holds the compressed data twice, which may be as long as the event, and the decompressed data
// once; zstd holds the decompressed data and its tables.
func EventCodec(maxEventBytes int64) int64 { return 3*(maxEventBytes+besideEvent) + 64<<10 }

// LargestCodec returns the maximum memory that a codec may use, in bytes. If a batch needs more to decompress,
// its records become dead letters.
func LargestCodec(foldMemory, maxEventBytes int64) int64 {
	return max(LargestBatch(foldMemory), minCodec, EventCodec(maxEventBytes))
}

// Room has the limits of the memory for reading. The partitions share one budget, which is safe for concurrent
// use; the other fields don't change.
type Room struct {
	Budget    *Budget
	MaxBatch  int64 // bytes: the largest batch whose records are read
	MaxRecord int64 // bytes: the longest record that is read
	MaxCodec  int64 // bytes: the maximum that a codec may hold
}

// maxResponse returns the maximum that is held of a response, in bytes.
func (r *Room) maxResponse() int64 { return r.MaxBatch + fetch.Beside }

// NewRoom returns the limits that follow from fold_memory and max_event_bytes, and the budget.
func NewRoom(foldMemory, maxEventBytes int64) Room {
	r := Room{
		MaxBatch: LargestBatch(foldMemory), MaxRecord: longestRecord(foldMemory, maxEventBytes), MaxCodec: LargestCodec(foldMemory, maxEventBytes),
	}
	// A tenth is left for memory that is released but not yet collected. The memory with which a batch is read
	// again is outside of the budget and is set aside.
	r.Budget = New(foldMemory*9/10-r.maxResponse(), turnOf(foldMemory))
	return r
}
