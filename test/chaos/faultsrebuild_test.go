package chaos

// Rebuilds from the log, under live traffic and whatever else is wrong: one that comes to
// its end, one that is killed, one that sleeps while its hold lapses.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/test/harness"
)

var rebuildFaults = []fault{
	{kind: rebuildEnds, group: ofRebuilds, do: rebuild},
	{kind: "rebuild: kill -9", group: ofRebuilds, do: killRebuild},
	{kind: "rebuild: SIGSTOP for a while", group: ofRebuilds, do: pauseRebuild},
}

const (
	rebuildEnds   = "rebuild: to its end"
	rebuildWithin = 2 * time.Minute
	// outlives is how long a killed rebuild's lock keeps the next one out, at most, and
	// how long its keys stay; the rest is for a busy machine.
	outlives = time.Minute + 15*time.Second
)

// rebuilding is a process of consumer rebuild.
type rebuilding struct {
	process        *child.Process
	stdout, stderr bytes.Buffer // to be read once it has ended
}

func (w *world) startRebuild() (*rebuilding, error) {
	b := &rebuilding{}
	cmd := exec.Command(harness.Binary(w.t), "rebuild", "--json")
	cmd.Env = w.place.Environment(w.place.Settings)
	cmd.Stdout, cmd.Stderr = &b.stdout, &b.stderr
	var err error
	b.process, err = child.Start(cmd, "")
	return b, err
}

// ended waits for its end, and says what it swapped, or why it didn't.
func (b *rebuilding) ended(ctx context.Context) (swapped string, err error) {
	select {
	case <-b.process.Done():
	case <-time.After(rebuildWithin):
		b.process.Kill()
		return "", fmt.Errorf("it had no end after %v: %s", rebuildWithin, b.lastWords())
	case <-ctx.Done():
		b.process.Kill()
		return "", ctx.Err()
	}
	if b.process.Err() != nil {
		return "", errors.New(b.lastWords())
	}
	var result struct {
		Swapped bool
		Records int
		Holds   int
		HeldMS  int `json:"held_ms"`
	}
	if err := json.Unmarshal(b.stdout.Bytes(), &result); err != nil {
		return "", fmt.Errorf("%w: %s", err, b.stdout.Bytes())
	}
	if !result.Swapped {
		return "", errors.New("it swapped nothing")
	}
	return fmt.Sprintf("%d records read, swapped, counting was held for %d ms", result.Records, result.HeldMS), nil
}

func (b *rebuilding) lastWords() string {
	lines := strings.Split(strings.TrimSpace(b.stderr.String()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func (b *rebuilding) running() bool {
	select {
	case <-b.process.Done():
		return false
	default:
		return true
	}
}

// rebuild has to come to its end where nothing else is wrong, or was a moment ago.
func rebuild(w *world, _ *rand.Rand) (func() string, error) {
	alone := w.alone() && w.unlocked()
	b, err := w.startRebuild()
	if err != nil {
		return nothing, err
	}
	swapped, err := b.ended(w.t.Context())
	if err != nil && alone && w.alone() {
		return nothing, err
	}
	return saw("%s", swapped), nil
}

func killRebuild(w *world, r *rand.Rand) (func() string, error) {
	b, err := w.startRebuild()
	if err != nil {
		return nothing, err
	}
	time.Sleep(between(r, 0, 2500*time.Millisecond))
	ran := b.running()
	b.process.Kill()
	if w.mayBeLocked(); !ran {
		return nothing, nil
	}
	keys := w.leftovers(w.t.Context())
	if len(keys) == 0 {
		return nothing, nil
	}
	return saw("it left %d keys", len(keys)), nil
}

func pauseRebuild(w *world, r *rand.Rand) (func() string, error) {
	b, err := w.startRebuild()
	if err != nil {
		return nothing, err
	}
	time.Sleep(between(r, 100*time.Millisecond, 2500*time.Millisecond))
	if err := b.process.Signal(syscall.SIGSTOP); err != nil {
		return nothing, err
	}
	keys := w.leftovers(w.t.Context())
	slept := between(r, time.Second, 6*time.Second)
	time.Sleep(slept)
	ran := b.running()
	if err := b.process.Signal(syscall.SIGCONT); err != nil {
		return nothing, err
	}
	swapped, err := b.ended(w.t.Context())
	if !ran || len(keys) == 0 {
		return nothing, nil
	}
	if err != nil {
		return saw("it slept for %s, and then: %v", seconds(slept), err), nil
	}
	return saw("it slept for %s; %s", seconds(slept), swapped), nil
}

// leftovers are the keys that rebuilds have in Redis.
func (w *world) leftovers(ctx context.Context) []string {
	var all []string
	keys := w.store.master(ctx).direct.Scan(ctx, 0, w.place.Key("~*"), 1000).Iterator()
	for keys.Next(ctx) {
		if !strings.HasPrefix(keys.Val(), w.place.Key("~try:")) {
			all = append(all, keys.Val())
		}
	}
	return all
}

// nothingStays sees that all that killed rebuilds have left is about to expire, and
// removes it: that it does isn't waited for.
func (w *world) nothingStays(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	redis := w.store.master(ctx).direct
	for _, key := range w.leftovers(ctx) {
		left, err := redis.PTTL(ctx, key).Result()
		if err != nil || left > outlives || left == -1 {
			t.Errorf("a rebuild's key stays: %s has %v to live (%v)", key, left, err)
		}
		if err := redis.Unlink(ctx, key).Err(); err != nil {
			t.Errorf("remove %s: %v", key, err)
		}
	}
}

// alone reports whether nothing but a rebuild goes on in this round.
func (w *world) alone() bool { return w.disturbed.Load()%2 == 0 }

// mayBeLocked is told of what leaves a lock behind that is nobody's any more: a rebuild
// that was killed, or a past that came back with one in it.
func (w *world) mayBeLocked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locked = time.Now()
}

// unlocked reports whether any such lock has expired.
func (w *world) unlocked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.locked) > outlives
}
