package harness

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a testing.TB that only records failures.
type recorder struct {
	testing.TB
	wrong []string
}

func (r *recorder) note(text string)               { r.wrong = append(r.wrong, text) }
func (r *recorder) Error(args ...any)              { r.note(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, a ...any) { r.note(fmt.Sprintf(format, a...)) }
func (r *recorder) Fatal(args ...any)              { r.note(fmt.Sprintln(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(format string, a ...any) {
	r.note(fmt.Sprintf(format, a...))
	runtime.Goexit()
}
func (r *recorder) FailNow()     { r.note("failed"); runtime.Goexit() }
func (r *recorder) Fail()        { r.note("failed") }
func (r *recorder) Failed() bool { return len(r.wrong) > 0 }

// Differences returns the failures of a check, also if it ends early.
func Differences(t testing.TB, check func(testing.TB)) []string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r)
	}()
	<-done
	return r.wrong
}
