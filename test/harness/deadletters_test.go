package harness

import (
	"testing"

	"github.com/standings/standings/test/oracle"
)

func TestOnlyWhatMayHaveGoneWithTheDeadLetterTopicIsExcused(t *testing.T) {
	t.Parallel()
	p := &Place{excused: []span{
		{from: map[int]int64{0: 10, 1: 5}, to: map[int]int64{0: 20, 1: 5, 2: 3}},
		{from: map[int]int64{0: 30}, to: map[int]int64{0: 31}},
	}}
	for at, want := range map[oracle.At]bool{
		{Partition: 0, Offset: 9}: false, {Partition: 0, Offset: 10}: true, {Partition: 0, Offset: 19}: true,
		{Partition: 0, Offset: 20}: false, {Partition: 0, Offset: 30}: true, {Partition: 0, Offset: 31}: false,
		{Partition: 1, Offset: 5}: false, {Partition: 2, Offset: 0}: true, {Partition: 3, Offset: 0}: false,
	} {
		if got := p.isExcused(at); got != want {
			t.Errorf("%v is excused: %v, want %v", at, got, want)
		}
	}
}
