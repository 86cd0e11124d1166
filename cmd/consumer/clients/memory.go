package clients

// What the process may take.

import (
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
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
		again := 2 * min(cfg.DuplicatesMemory, duplicatesOf(cfg, partitions))
		debug.SetMemoryLimit(cfg.FoldMemory + again + besideAll + besidePartition*int64(max(partitions, 16)))
	}
	log.Debug("memory limit", zap.Int64("bytes", debug.SetMemoryLimit(-1)))
}

// duplicatesOf is what it takes to find the duplicates of so many partitions, in bytes.
func duplicatesOf(cfg *config.Config, partitions int) int64 {
	return cfg.Duplicates * duplicates.Bytes * int64(partitions)
}

// CheckDuplicates refuses event.duplicates where a replica that came to have all partitions
// wouldn't have room for it, and says what would do.
func CheckDuplicates(cfg *config.Config, partitions int) error {
	need := duplicatesOf(cfg, partitions)
	if need <= cfg.DuplicatesMemory {
		return nil
	}
	return fmt.Errorf("event.duplicates: %s records of %s take %dMiB, and event.duplicates_memory is %s: that has room for %s records; or set it to %dMiB",
		units.Thousands(cfg.Duplicates), units.Plural(int64(partitions), "partition"), mib(need), units.ShortBytes(cfg.DuplicatesMemory),
		units.Thousands(duplicates.Fit(cfg.DuplicatesMemory, partitions)), mib(need))
}

func mib(n int64) int64 { return (n + units.MiB - 1) / units.MiB }
