package testenv

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPausedProcessStandsWithAllItsThreads(t *testing.T) {
	k, ok := PrivateKafka(t, nil).private.(*kafkaProcess)
	if !ok { // fail only if local processes are demanded
		if os.Getenv(DemandVariable) != "processes" {
			t.Setenv(DemandVariable, "")
		}
		NotRun(t, "it needs a Kafka that is a local process")
	}
	tasks := filepath.Join("/proc", strconv.Itoa(k.process.Pid()), "task", "*", "stat")
	for range 200 {
		require.NoError(t, pause(k.process))
		threads, err := filepath.Glob(tasks)
		require.NoError(t, err)
		require.Greater(t, len(threads), 10)
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			require.NoError(t, err)
			require.Regexp(t, `\) T `, string(stat), thread)
		}
		require.NoError(t, resume(k.process))
	}
}
