package app

// What the process may take.

import (
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/duplicates"
)

// What the process needs beside fold_memory, in bytes: as much as it has when
// idle, and a connection and some goroutines for each partition.
const (
	besideAll       = 8 << 20
	besidePartition = 96 << 10
)

// LimitMemory sets what the garbage collector may use, unless the operator has
// (GOMEMLIMIT): so that what batches have let go of is collected before the process
// grows past fold_memory. Any replica may come to have all partitions.
func LimitMemory(cfg *config.Config, partitions int, log *zap.Logger) {
	if debug.SetMemoryLimit(-1) == 1<<63-1 {
		// What finds duplicates is taken anew with every rebalance, and collected later.
		again := 2 * DuplicatesMemory(cfg, partitions)
		debug.SetMemoryLimit(cfg.FoldMemory + again + besideAll + besidePartition*int64(max(partitions, 16)))
	}
	log.Debug("memory limit", zap.Int64("bytes", debug.SetMemoryLimit(-1)))
}

// LargestBatch is the largest record batch, in bytes, whose events a consumer counts.
func LargestBatch(cfg *config.Config) int64 { return ingest.LargestBatch(cfg.FoldMemory) }

// LargestCodec is the most that a consumer's codec holds, in bytes: what takes more isn't counted.
func LargestCodec(cfg *config.Config) int64 {
	return ingest.LargestCodec(cfg.FoldMemory, cfg.MaxEventBytes)
}

// DuplicatesMemory is what a process needs to find the duplicates of so many partitions, in bytes.
func DuplicatesMemory(cfg *config.Config, partitions int) int64 {
	return cfg.Duplicates * duplicates.Bytes * int64(partitions)
}
