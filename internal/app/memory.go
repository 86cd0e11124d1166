package app

// The memory that the process may use, and the memory of this machine.

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/units"
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

// CheckDuplicates refuses an event.duplicates that needs more memory than this process has if all partitions
// are assigned to it, which can happen to any replica.
func CheckDuplicates(cfg *config.Config, partitions int) error {
	return checkDuplicates(cfg, partitions, memoryOf(os.DirFS("/")))
}

func checkDuplicates(cfg *config.Config, partitions int, memory int64) error {
	if cfg.Duplicates == 0 || partitions == 0 || memory == 0 {
		return nil
	}
	room := memory - cfg.FoldMemory - cfg.FoldMemory/10 - besideAll - besidePartition*int64(partitions)
	fits := max(0, room) / (duplicates.Bytes * int64(partitions))
	if cfg.Duplicates <= fits {
		return nil
	}
	return fmt.Errorf("event.duplicates: %s records of %s need %s, but this process has %s: next to fold_memory, at most %d records fit",
		units.Thousands(cfg.Duplicates), units.Plural(int64(partitions), "partition"), gibibytes(DuplicatesMemory(cfg, partitions)), gibibytes(memory), fits)
}

func gibibytes(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// memoryOf returns the memory that this process may use, in bytes: the machine's, or less if a control group
// limits it. It returns 0 if Linux's files do not state it.
func memoryOf(root fs.FS) int64 {
	least := int64(0)
	limit := func(text string, unit int64) {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 && n < 1<<60/unit && (least == 0 || n*unit < least) {
			least = n * unit
		}
	}
	file := func(name string) string {
		text, _ := fs.ReadFile(root, name) // a missing file sets no limit
		return string(text)
	}
	for line := range strings.Lines(file("proc/meminfo")) {
		if kB, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			limit(strings.TrimSuffix(strings.TrimSpace(kB), " kB"), 1024)
		}
	}
	limit(file("sys/fs/cgroup/memory/memory.limit_in_bytes"), 1)
	limit(file("sys/fs/cgroup/memory.max"), 1)
	lines := bufio.NewScanner(strings.NewReader(file("proc/self/cgroup")))
	for lines.Scan() {
		if group, ok := strings.CutPrefix(lines.Text(), "0::/"); ok { // and all groups that contain it
			for ; group != "" && group != "."; group = path.Dir(group) {
				limit(file(path.Join("sys/fs/cgroup", group, "memory.max")), 1)
			}
		}
	}
	return least
}
