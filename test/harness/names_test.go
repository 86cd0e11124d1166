package harness

import (
	"maps"
	"testing"

	"github.com/standings/standings/test/oracle"
)

func TestNamesThatAreGoneWithALostRedisAreNotCompared(t *testing.T) {
	t.Parallel()
	p := &Place{NamedFrom: map[int]int64{0: 10}}
	want := oracle.Expected{
		Names: map[string]string{"before": "1 a", "since": "2 b", "other": "3 c"},
		Named: map[string]oracle.At{"before": {Partition: 0, Offset: 9}, "since": {Partition: 0, Offset: 10}, "other": {Partition: 1, Offset: 0}},
	}
	found := p.comparable(want, map[string]string{"before": "0 x", "since": "2 b"})
	if !maps.Equal(want.Names, map[string]string{"since": "2 b", "other": "3 c"}) || !maps.Equal(found, map[string]string{"since": "2 b"}) {
		t.Errorf("expected are %v, and %v are compared with them", want.Names, found)
	}
}
