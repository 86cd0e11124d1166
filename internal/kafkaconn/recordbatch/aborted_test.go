package recordbatch

import (
	"slices"
	"testing"
)

// of returns a transactional batch of n records.
func of(producer, base int64, n int) spec {
	return with(plain(base, n, attrTransactional), producer)
}

func offsets(records []record) (all []int64) {
	for _, r := range records {
		all = append(all, r.offset)
	}
	return all
}

func TestAProducerIsAbortedUntilItsMarkerAndNoFurther(t *testing.T) {
	in := join(
		of(7, 0, 2), of(8, 2, 1), with(plain(3, 1, 0), 7), // 7 and 8 start; one batch of 7 is not transactional
		marker(4, 7, abort), of(7, 5, 1), of(8, 6, 1), // 7 starts again, 8 continues
		marker(7, 8, abort), marker(8, 7, commit), of(8, 9, 1), // 7 commits, 8 starts again
		of(7, 10, 1), marker(11, 8, commit), marker(12, 7, abort), of(7, 13, 1))
	aborted := []Aborted{{7, 10}, {8, 2}, {7, 0}} // in no order
	want := []int64{3, 5, 9, 13}
	for from := range int64(14) {
		got, next, err := read(t, in, from, slices.Clone(aborted)...)
		if err != nil || next != 14 {
			t.Fatalf("from %d: next %d: %v", from, next, err)
		}
		rest := slices.DeleteFunc(slices.Clone(want), func(o int64) bool { return o < from })
		if !slices.Equal(offsets(got), rest) {
			t.Errorf("from %d: %v, and should be %v", from, offsets(got), rest)
		}
	}
}

func TestAMarkerEndsEveryTransactionThatBeganBeforeIt(t *testing.T) {
	in := join(of(7, 0, 1), marker(1, 7, abort), of(7, 2, 1))
	got, _, err := read(t, in, 0, Aborted{7, 0}, Aborted{7, 0}, Aborted{7, 1}, Aborted{7, 40})
	if err != nil || !slices.Equal(offsets(got), []int64{2}) {
		t.Fatalf("%v: %v", offsets(got), err)
	}
}

func TestControlRecordsOfOtherKindsAreGonePast(t *testing.T) {
	leader := marker(1, -1, 2) // a change of leader, KIP-595
	leader.attrs = attrControl
	in := join(of(7, 0, 1), leader, of(7, 2, 1), marker(3, 7, 1), plain(4, 1, 0))
	got, next, err := read(t, in, 0, Aborted{7, 0})
	if err != nil || next != 5 || !slices.Equal(offsets(got), []int64{4}) {
		t.Fatalf("%v, next %d: %v", offsets(got), next, err)
	}
}

func TestAnAbortedBatchIsNotDecompressed(t *testing.T) {
	s := of(7, 0, 3)
	s.attrs |= 4
	s.payload = []byte("no zstd")
	got, next, err := read(t, join(s, plain(3, 1, 0)), 0, Aborted{7, 0})
	if err != nil || next != 4 || len(got) != 1 {
		t.Fatalf("%v, next %d: %v", offsets(got), next, err)
	}
}
