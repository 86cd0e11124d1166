package event

import "testing"

func TestTheReasonsAreTheContractsWordsInItsOrder(t *testing.T) {
	want := []string{"malformed", "invalid", "unknown_board", "bad_time", "overflow", "window_limit"}
	got := Reasons()
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, reason := range got {
		if reason.String() != want[i] {
			t.Errorf("reason %d is %s, want %s", i, reason, want[i])
		}
	}
}
