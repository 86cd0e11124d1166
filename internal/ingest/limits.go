package ingest

import (
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/kafkaconn/fetch"
)

// What fold_memory has room for. A turn at it is a third, and one partition has to be able
// to read anything valid with that.

const (
	// lz4Codec is what lz4 holds with blocks of 4 MiB, in bytes: those of kafka-go's own
	// writers. minCodec is what a codec may hold however small the budget.
	lz4Codec = 8<<20 + 16<<10
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

// LeastMemory is the least fold_memory, in bytes, with which every event of a size can be
// read, however it is compressed.
func LeastMemory(maxEventBytes int64) int64 {
	record := maxEventBytes + besideEvent
	window := record + record/4 + 8<<10 // as it grows to a record
	turn := record + window + max(lz4Codec, eventCodec(maxEventBytes)) + leastBatch
	return max(16*record, 3*turn)
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
	memory   *memory.Budget
	maxBatch int64 // bytes: the largest batch whose records are read
	maxCodec int64 // bytes: the most that a codec may hold
}

// maxResponse is the most that is held of a response, in bytes.
func (r *room) maxResponse() int64 { return r.maxBatch + fetch.Beside }

func newRoom(foldMemory, maxEventBytes int64) room {
	r := room{maxBatch: LargestBatch(foldMemory), maxCodec: LargestCodec(foldMemory, maxEventBytes)}
	// A tenth is for what was let go of and isn't collected yet. What a batch
	// is read again with, outside of the budget, is set aside.
	r.memory = memory.New(foldMemory*9/10-r.maxResponse(), foldMemory/3)
	return r
}
