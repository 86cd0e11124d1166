package chaos

// This file defines faults, and how their effect is detected.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/standings/standings/test/harness"
)

// fault is a temporary fault. do starts it, maintains it and ends it. The function that it returns is
// called after the recovery, and describes how the fault is known to have had an effect; it returns an
// empty text if there was none.
type fault struct {
	kind  string
	group string   // faults of one group do not overlap
	modes []string // empty: all
	apart []string // further groups whose faults must not overlap with it
	calm  bool     // everything else works during the fault
	do    func(w *world, r *rand.Rand) (effect func() string, err error)
}

// The groups of faults.
const (
	ofConsumers = "consumers"
	ofRedis     = "redis"
	ofKafka     = "kafka"
	ofRebuilds  = "rebuilds"
	ofBans      = "bans"
	ofArchive   = "archive"
)

var faults = slices.Concat([]fault{
	{kind: "consumer: kill -9", group: ofConsumers, do: killConsumer},
	{kind: "consumers: kill -9, all of them", group: ofConsumers, do: killConsumers},
	{kind: "consumers: kill -9, in the middle of a sweep", group: ofConsumers, do: killInSweep},
	{kind: "consumer: SIGSTOP past its session", group: ofConsumers, do: pauseConsumer},
	{kind: "consumer: SIGTERM", group: ofConsumers, do: terminateConsumer},
}, redisFaults, clusterFaults, kafkaFaults, deadLetterFaults, networkFaults, rebuildFaults, banFaults, leaderFaults, archiveFaults)

// beside reports whether two faults may overlap.
func (f fault) beside(g fault) bool {
	return f.group != g.group && !slices.Contains(f.apart, g.group) && !slices.Contains(g.apart, f.group)
}

// of returns the faults of a mode whose kinds match a regular expression.
func of(mode, kinds string) []fault {
	asked := regexp.MustCompile(kinds)
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		return len(f.modes) > 0 && !slices.Contains(f.modes, mode) || !asked.MatchString(f.kind)
	})
}

// chosen returns the modes of a list that have faults of these kinds. It reports the modes that it leaves
// out.
func chosen(modes, kinds string) ([]string, error) {
	if _, err := regexp.Compile(kinds); err != nil {
		return nil, fmt.Errorf("the kinds of faults: %w", err)
	}
	var all []string
	for _, mode := range strings.Split(modes, ",") {
		switch {
		case !slices.Contains(allModes, mode):
			return nil, fmt.Errorf("there is no mode %q", mode)
		case len(of(mode, kinds)) == 0:
			fmt.Printf("chaos: the mode %s is left out: it has no fault of a kind that %q fits\n", mode, kinds)
		default:
			all = append(all, mode)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no fault of %s is of a kind that %q fits", modes, kinds)
	}
	return all, nil
}

// saw returns an effect that was observed at once.
func saw(format string, args ...any) func() string {
	text := fmt.Sprintf(format, args...)
	return func() string { return text }
}

// nothing is the effect of a fault without an effect.
func nothing() string { return "" }

// between returns a random duration.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// killed is the exit code after kill -9, as AwaitExit returns it.
const killed = 128 + int(syscall.SIGKILL)

func killConsumer(w *world, r *rand.Rand) (func() string, error) {
	s := w.take(r)
	if s == nil {
		return nothing, nil
	}
	defer w.giveBack(s)
	had := s.has()
	s.consumer.Kill()
	code := s.consumer.AwaitExit(w.t, harness.Within)
	time.Sleep(between(r, 0, 2*time.Second))
	if code != killed || had == 0 {
		return nothing, nil
	}
	return saw("consumer %d gone, with %d partitions", s.consumer.Number, had), nil
}

// killInSweep kills all consumers while a batch of one of them is partly applied.
func killInSweep(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	all := w.takeAll(r)
	w.sweeping(ctx)
	for _, s := range all {
		s.consumer.Kill()
	}
	at := w.store.sweep(ctx, w.place)
	for _, s := range all {
		w.giveBack(s)
	}
	if at == "" || len(all) < len(w.slots) {
		return nothing, nil
	}
	return saw("all were gone, and the ledger stood at %s", at), nil
}

func killConsumers(w *world, r *rand.Rand) (func() string, error) {
	gone, had := 0, 0
	all := w.takeAll(r)
	for _, s := range all {
		had += s.has()
		s.consumer.Kill()
		if s.consumer.AwaitExit(w.t, harness.Within) == killed {
			gone++
		}
	}
	time.Sleep(between(r, 0, 2*time.Second))
	for _, s := range all {
		w.giveBack(s)
	}
	if gone < len(w.slots) || had == 0 {
		return nothing, nil
	}
	return saw("all %d gone, with %d partitions", gone, had), nil
}

// pauseConsumer suspends a consumer until its partitions are assigned to others, so that it wakes up as a
// zombie.
func pauseConsumer(w *world, r *rand.Rand) (func() string, error) {
	s := w.take(r)
	if s == nil {
		return nothing, nil
	}
	defer w.giveBack(s)
	before, had := generation(s.consumer)
	s.consumer.Signal(w.t, syscall.SIGSTOP)
	time.Sleep(sessionTimeout + between(r, time.Second, 4*time.Second))
	after := w.latest()
	s.consumer.Signal(w.t, syscall.SIGCONT)
	if after <= before || had == 0 {
		return nothing, nil
	}
	return saw("generation %d became %d while consumer %d slept on %d partitions", before, after, s.consumer.Number, had), nil
}

func terminateConsumer(w *world, r *rand.Rand) (func() string, error) {
	s := w.take(r)
	if s == nil {
		return nothing, nil
	}
	defer w.giveBack(s)
	s.consumer.Signal(w.t, syscall.SIGTERM)
	if code := s.consumer.AwaitExit(w.t, harness.Within); code != 0 {
		return nothing, fmt.Errorf("consumer %d ended with code %d after SIGTERM: %s", s.consumer.Number, code, s.consumer.Log.Tail(3))
	}
	time.Sleep(between(r, 0, time.Second))
	return saw("consumer %d ended in order", s.consumer.Number), nil
}

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
