package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// TestFoldMemoryIsKeptWithinATenth measures the process: the peak memory of a consumer of 64 partitions, less its
// memory when idle. The backlog has batches that expand more than a hundredfold and hold more members than
// fit.
func TestFoldMemoryIsKeptWithinATenth(t *testing.T) {
	testenv.Slow(t)
	testenv.RealKafka(t, "a broker inside the test's process takes the machine's memory for itself")
	t.Parallel()
	const partitions, events, foldMemory = 64, 700_000, 64 << 20
	place := harness.New(t, harness.Options{
		Partitions: partitions,
		Settings: map[string]string{
			"fold_memory": strconv.Itoa(foldMemory), "redis.assume_noeviction": "true", "redis.shards": harness.ShardsByTurns(t),
			"periods.weekly.enabled": "false", "periods.monthly.enabled": "false",
		},
	})
	for p := range partitions {
		place.Publish(t, harness.Record(p, `{"user_id":"first","points":1}`))
	}
	idle := place.Start(t)
	place.AwaitCaughtUp(t, within)
	base := peak(t, idle.Pid())
	idle.Terminate(t)

	publishPadded(t, place, partitions, events)
	loaded := place.Start(t)
	place.AwaitCaughtUp(t, within)
	most := peak(t, loaded.Pid())
	loaded.Terminate(t)

	used := most - base
	t.Logf("idle %d MiB, at most %d MiB: fold_memory of %d MiB came to %d MiB", base>>20, most>>20, foldMemory>>20, used>>20)
	if used > foldMemory*11/10 {
		t.Errorf("%d bytes over the idle process, fold_memory is %d", used, foldMemory)
	}
	if used < foldMemory/3 {
		t.Errorf("%d bytes over the idle process: fold_memory of %d was hardly used, so this shows nothing", used, foldMemory)
	}
	board := place.Boards(t)
	for name, members := range board {
		if len(members) != events+1 {
			t.Errorf("%s has %d members, want %d", name, len(members), events+1)
		}
	}
	if len(board) != 1 {
		t.Errorf("%d boards, want the yearly one", len(board))
	}
}

// publishPadded publishes events of equally many members, each with a value of 3 KB that compresses to a
// hundredth or less.
func publishPadded(t *testing.T, place *harness.Place, partitions, events int) {
	t.Helper()
	client := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerLinger(100*time.Millisecond))
	padding := strings.Repeat("a", 3000)
	const step = 20_000
	for from := 0; from < events; from += step {
		var all []*kgo.Record
		for i := from; i < min(from+step, events); i++ {
			all = append(all, &kgo.Record{Topic: place.Topic, Partition: int32(i / 400 % partitions),
				Value: fmt.Appendf(nil, `{"user_id":"player-%07d","points":%d,"padding":%q}`, i, 1+i%50, padding)})
		}
		if err := client.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// peak returns the peak memory of a process in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		testenv.NotRun(t, "the system doesn't tell a process's memory: "+err.Error())
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM in the process's status")
	return 0
}
