package ranking

import (
	"testing"
	"time"
)

func TestACallsTimeIsItsOwnThoughAnotherWasBeforeIt(t *testing.T) {
	s, begin := new(Store), time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	for _, call := range []struct{ began, ended, own int }{
		{0, 5, 5},   // alone
		{1, 9, 4},   // sent at 1, executed after the first had ended
		{6, 14, 5},  // and so on
		{20, 23, 3}, // alone again
		{21, 22, 0}, // answered before one that ended earlier: another connection
	} {
		if got := s.own(at(call.began), at(call.ended)); got != time.Duration(call.own)*time.Millisecond {
			t.Errorf("[%d, %d] took %v of its own, want %d ms", call.began, call.ended, got, call.own)
		}
	}
}
