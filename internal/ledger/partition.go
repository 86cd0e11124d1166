package ledger

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Partition is a partition of a topic.
type Partition struct {
	Topic  string
	Number int
}

// String returns the partition's field in the ledger: <topic>/<number>.
func (p Partition) String() string { return p.Topic + "/" + strconv.Itoa(p.Number) }

// Compare orders by topic, then number: points/2 is before points/10.
func (p Partition) Compare(q Partition) int {
	return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.Number, q.Number))
}

// ParsePartition parses what String writes, and nothing else.
func ParsePartition(field string) (Partition, error) {
	at := strings.LastIndexByte(field, '/')
	if at > 0 {
		number, err := strconv.Atoi(field[at+1:])
		if p := (Partition{field[:at], number}); err == nil && number >= 0 && p.String() == field {
			return p, nil
		}
	}
	return Partition{}, fmt.Errorf("%q is no field of a ledger: want <topic>/<partition>", field)
}

// CompareFields orders fields of the ledger like their partitions. Fields that are no partition come first.
func CompareFields(a, b string) int {
	p, _ := ParsePartition(a)
	q, _ := ParsePartition(b)
	return cmp.Or(p.Compare(q), cmp.Compare(a, b))
}
