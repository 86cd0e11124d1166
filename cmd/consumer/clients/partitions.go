package clients

// Partitions as the ledger and the workers' lines name them.

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ingest"
)

// PartitionID orders partitions as the configuration names their topics.
type PartitionID struct {
	Topic     string
	Partition int
}

// ParseField reads a name of the ledger: topic/partition.
func ParseField(field string) (PartitionID, bool) {
	i := strings.LastIndexByte(field, '/')
	n, err := strconv.Atoi(field[i+1:])
	return PartitionID{field[:max(i, 0)], n}, i > 0 && err == nil && n >= 0
}

// StaleAfter is how old a worker's line is of whom nothing is heard any more: three of its lines.
const StaleAfter = ingest.StaleAfter

// CompareFields has points/2 before points/10.
func CompareFields(a, b string) int {
	x, _ := ParseField(a)
	y, _ := ParseField(b)
	return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition), cmp.Compare(a, b))
}
