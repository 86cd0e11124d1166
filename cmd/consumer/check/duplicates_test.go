package check

import (
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/config"
)

func TestTheMemoryOfDuplicatesIsReported(t *testing.T) {
	topics := []topicFacts{{partitions: make([]kafka.Partition, 3)}, {partitions: make([]kafka.Partition, 1)}}
	for records, want := range map[int64]string{
		0: "", 10_000: "ok 10,000 records of 4 partitions take 937.5KiB",
	} {
		got := ""
		for _, f := range judgeDuplicates(&config.Config{Duplicates: records}, topics) {
			got += string(f.Result) + " " + f.Found
		}
		if got != want && !strings.HasSuffix(got, want) {
			t.Errorf("%d: %q, want %q", records, got, want)
		}
	}
}
