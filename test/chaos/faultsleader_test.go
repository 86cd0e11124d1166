package chaos

// This file kills or suspends the consumer that is the leader.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/standings/standings/test/harness"
)

var leaderFaults = []fault{
	{kind: "leader: kill -9", group: ofConsumers, do: killLeader},
	{kind: "leader: SIGSTOP past its lease", group: ofConsumers, do: pauseLeader},
}

// leases is longer than a dead leader keeps its lease.
const leases = 20 * time.Second

// leader returns the leader from the lease's key; "" if there is none or it is unknown.
func (w *world) leader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	words := strings.Fields(w.store.at(ctx).Get(ctx, w.place.Prefix+":{0}:leader").Val())
	if len(words) < 4 {
		return ""
	}
	return words[3]
}

// takeLeader reserves the leading consumer for a fault; nil if another fault has it or there is no leader.
func (w *world) takeLeader() (*slot, string) {
	owner := w.leader(w.t.Context())
	for _, s := range w.slots {
		s.mu.Lock()
		if !s.held && s.consumer.Running() && strings.Contains(owner, fmt.Sprintf("/%d/", s.consumer.Pid())) {
			s.held = true
			s.mu.Unlock()
			return s, owner
		}
		s.mu.Unlock()
	}
	return nil, ""
}

// another waits for another leader.
func (w *world) another(than string) bool {
	for deadline := time.Now().Add(leases); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if now := w.leader(w.t.Context()); now != "" && now != than {
			return true
		}
	}
	return false
}

func killLeader(w *world, r *rand.Rand) (func() string, error) {
	s, was := w.takeLeader()
	if s == nil {
		return nothing, nil
	}
	defer w.giveBack(s)
	s.consumer.Kill()
	if s.consumer.AwaitExit(w.t, harness.Within) != killed {
		return nothing, nil
	}
	time.Sleep(between(r, 0, 2*time.Second))
	return saw("consumer %d was gone, which led as %s", s.consumer.Number, was), nil
}

func pauseLeader(w *world, _ *rand.Rand) (func() string, error) {
	s, was := w.takeLeader()
	if s == nil {
		return nothing, nil
	}
	defer w.giveBack(s)
	s.consumer.Signal(w.t, syscall.SIGSTOP)
	other := w.another(was)
	s.consumer.Signal(w.t, syscall.SIGCONT)
	if !other {
		return nothing, nil
	}
	return saw("consumer %d slept, and another leads", s.consumer.Number), nil
}
