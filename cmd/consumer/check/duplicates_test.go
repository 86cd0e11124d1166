package check

import (
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/config"
)

func TestDuplicatesAreHeldAgainstTheirMemory(t *testing.T) {
	topics := []topicFacts{{partitions: make([]kafka.Partition, 3)}, {partitions: make([]kafka.Partition, 1)}}
	for records, want := range map[int64]string{
		0: "", 10_000: "ok 10,000 records of 4 partitions",
		10_923: "wrong event.duplicates: 10,923 records of 4 partitions take 2MiB, and event.duplicates_memory is 1MiB: that has room for 10,922 records; or set it to 2MiB",
	} {
		got := ""
		for _, f := range judgeDuplicates(&config.Config{Duplicates: records, DuplicatesMemory: 1 << 20}, topics) {
			got += string(f.Result) + " " + f.Found
		}
		if got != want && !strings.HasSuffix(got, want) {
			t.Errorf("%d: %q, want %q", records, got, want)
		}
	}
}
