package app

// The memory that the process may use.

import (
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/memory"
)

// The memory that the process needs in addition to fold_memory, in bytes: the amount when idle, and a
// connection and some goroutines for each partition.
const (
	besideAll       = 8 << 20
	besidePartition = 96 << 10
)

// LimitMemory sets the garbage collector's memory limit, unless the operator has (GOMEMLIMIT). The memory of
// closed batches is then collected before the process grows past fold_memory. The limit allows for all
// partitions, since they may all be assigned to this replica.
func LimitMemory(cfg *config.Config, partitions int, log *zap.Logger) {
	if debug.SetMemoryLimit(-1) == 1<<63-1 {
		// Every rebalance allocates the sets for duplicates again; the old ones are collected later.
		again := 2 * DuplicatesMemory(cfg, partitions)
		debug.SetMemoryLimit(cfg.FoldMemory + again + besideAll + besidePartition*int64(max(partitions, 16)))
	}
	log.Debug("memory limit", zap.Int64("bytes", debug.SetMemoryLimit(-1)))
}

// LargestBatch returns the size of the largest record batch, in bytes, whose events a consumer counts.
func LargestBatch(cfg *config.Config) int64 { return memory.LargestBatch(cfg.FoldMemory) }

// LargestCodec returns the maximum memory of a consumer's codec, in bytes. A batch that needs more is not
// counted.
func LargestCodec(cfg *config.Config) int64 {
	return memory.LargestCodec(cfg.FoldMemory, cfg.MaxEventBytes)
}

// DuplicatesMemory returns the memory for finding the duplicates of so many partitions, in bytes.
func DuplicatesMemory(cfg *config.Config, partitions int) int64 {
	return cfg.Duplicates * duplicates.Bytes * int64(partitions)
}
