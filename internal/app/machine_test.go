package app

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/units"
)

func TestTheLeastLimitOfTheMachineAndItsControlGroupsCounts(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := file("MemTotal:        8000000 kB\nMemFree:          100 kB\n")
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"nothing is known":           {fstest.MapFS{}, 0},
		"the machine":                {fstest.MapFS{"proc/meminfo": machine, "sys/fs/cgroup/memory.max": file("max\n")}, 8_000_000 << 10},
		"a container":                {fstest.MapFS{"proc/meminfo": machine, "sys/fs/cgroup/memory.max": file("536870912\n")}, 512 << 20},
		"an old container":           {fstest.MapFS{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("536870912\n")}, 512 << 20},
		"an old one without a limit": {fstest.MapFS{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 8_000_000 << 10},
		"a unit in a slice": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("1:name=systemd:/x\n0::/a.slice/b.service\n"),
			"sys/fs/cgroup/a.slice/memory.max": file("268435456\n"), "sys/fs/cgroup/a.slice/b.service/memory.max": file("max\n"),
		}, 256 << 20},
	} {
		require.Equal(t, c.want, memoryOf(c.files), name)
	}
}

func TestMoreDuplicatesThanMemoryHoldsAreRefusedWithTheNumberThatFits(t *testing.T) {
	cfg := &config.Config{FoldMemory: 256 * units.MiB}
	const memory = 8 << 30
	require.NoError(t, checkDuplicates(cfg, 64, memory), "it is off")
	cfg.Duplicates = 100_000_000
	require.NoError(t, checkDuplicates(cfg, 64, 0), "nobody knows")
	err := checkDuplicates(cfg, 64, memory)
	require.ErrorContains(t, err, "event.duplicates: 100,000,000 records of 64 partitions need 143.1 GiB, but this process has 8.0 GiB: next to fold_memory, at most 5390609 records fit")
	for _, n := range []int64{5_390_609, 5_000_000} {
		cfg.Duplicates = n
		require.NoError(t, checkDuplicates(cfg, 64, memory))
	}
	require.ErrorContains(t, checkDuplicates(cfg, 64, 100<<20), "at most 0 records fit")
}
