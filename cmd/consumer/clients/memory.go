package clients

// What the process may take.

import (
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/config"
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
		debug.SetMemoryLimit(cfg.FoldMemory + besideAll + besidePartition*int64(max(partitions, 16)))
	}
	log.Debug("memory limit", zap.Int64("bytes", debug.SetMemoryLimit(-1)))
}
