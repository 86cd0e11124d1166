package terminal

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsALineEveryFewSecondsWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		n := int64(0)
		p := ShowProgress(&out, "publishing to points", 2_000_000, func() int64 { n += 50_000; return n })
		time.Sleep(11 * time.Second)
		p.Note("consumer: something\nhappened")
		synctest.Wait()
		p.Stop()
		want := "publishing to points: 50,000 of 2,000,000 events, 10,000/s, 3m15s left\n" +
			"publishing to points: 100,000 of 2,000,000 events, 10,000/s, 3m10s left\nconsumer: something happened\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", &out, want)
		}
	})
}
