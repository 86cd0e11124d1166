package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsALineEveryFewSecondsWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		n := int64(0)
		p := ShowProgress(&out, "publishing to points", "events", 2_000_000, func() int64 { n += 50_000; return n })
		time.Sleep(11 * time.Second)
		p.Note("consumer: something\nhappened\x1b[2J")
		synctest.Wait()
		want := "publishing to points: 50,000 of 2,000,000 events, 10,000/s, 3m15s left\n" +
			"publishing to points: 100,000 of 2,000,000 events, 10,000/s, 3m10s left\nconsumer: something happened\\x1b[2J\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", &out, want)
		}
		p.Stop()
		if out.String() != want {
			t.Errorf("and then\n%s", out.String()[len(want):])
		}
	})
}

// The last note is often the reason for the end.
func TestNoNoteIsLostAtTheEnd(t *testing.T) {
	for range 100 { // select chooses at random between two ready channels
		synctest.Test(t, noNoteIsLost) // where no progress line is due, however slow the machine is
	}
}

func noNoteIsLost(t *testing.T) {
	t.Helper()
	var out bytes.Buffer
	p := ShowProgress(&out, "removed", "keys", 0, func() int64 { return 0 })
	want := ""
	for i := range 10 {
		p.Note(fmt.Sprint("note ", i))
		want += fmt.Sprintf("note %d\n", i)
	}
	p.Stop()
	p.Note("after the end")
	if got := out.String(); got != want+"after the end\n" {
		t.Fatalf("got %q", strings.ReplaceAll(got, "\n", "|"))
	}
}
