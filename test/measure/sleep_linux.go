package main

import (
	"syscall"
	"time"
)

// exactly has this thread woken within a microsecond of when it asks for, in place of 50.
func exactly() {
	const setTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
}

// sleep is time.Sleep by the thread itself: the runtime's timers are those of a poll, to the millisecond
// where the process has nothing else to do.
func sleep(d time.Duration) {
	if d > 0 {
		left := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&left, nil)
	}
}
