package chaos

// This file runs rebuilds under live traffic and other faults: one to its end, one that is killed, and one
// that is suspended while its hold expires.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

var rebuildFaults = []fault{
	{kind: rebuildEnds, group: ofRebuilds, calm: true, do: rebuild},
	{kind: "rebuild: kill -9", group: ofRebuilds, calm: true, do: killRebuild},
	{kind: "rebuild: SIGSTOP for a while", group: ofRebuilds, calm: true, do: pauseRebuild},
}

const (
	rebuildEnds   = "rebuild: to its end"
	rebuildWithin = 2 * time.Minute
	// outlives is the maximum time for which a killed rebuild's lock blocks the next one and its keys
	// remain, with an allowance for a busy machine.
	outlives = time.Minute + 15*time.Second
	// markFor is the lifetime of the mark by which a rebuild knows that it has swapped.
	markFor = 10 * time.Minute
	// lockedWithin is the limit until a rebuild has its lock, whatever else is wrong.
	lockedWithin = 15 * time.Second
)

// rebuilding is a process of consumer rebuild.
type rebuilding struct {
	*harness.Process

	others []string // keys of earlier rebuilds
	took   int64    // ms, set once it has swapped
}

func (w *world) startRebuild() *rebuilding {
	others, _ := w.leftovers(w.t.Context()) // keys not listed here may be taken for this rebuild's own
	return &rebuilding{Process: w.place.Begin(w.t, nil, "rebuild", "--json"), others: others}
}

// await waits for a rebuild's end, and returns what it swapped, or why it did not.
func (w *world) await(b *rebuilding) (swapped string, err error) {
	ctx := w.t.Context()
	select {
	case <-b.Done():
	case <-time.After(rebuildWithin):
		b.Kill()
		return "", fmt.Errorf("it had no end after %v: %s", rebuildWithin, b.lastLines(12))
	case <-ctx.Done():
		b.Kill()
		return "", ctx.Err()
	}
	if b.AwaitExit(w.t, time.Second) != 0 {
		return "", errors.New(b.lastLines(1))
	}
	var result struct {
		Swapped bool
		Records int
		Holds   int
		HeldMS  int   `json:"held_ms"`
		TookMS  int64 `json:"took_ms"`
	}
	if err := json.Unmarshal(b.Out.Bytes(), &result); err != nil {
		return "", fmt.Errorf("%w: %s", err, b.Out.Bytes())
	}
	if !result.Swapped {
		return "", errors.New("it swapped nothing")
	}
	b.took = result.TookMS
	return fmt.Sprintf("%d records read, swapped, counting was held for %d ms", result.Records, result.HeldMS), nil
}

// lastLines returns the last lines of its log. For a rebuild that does not end, the progress lines contain what it
// waits for.
func (b *rebuilding) lastLines(n int) string {
	return strings.ReplaceAll(strings.TrimSpace(b.Log.Tail(n)), "\n", " | ")
}

// rebuild runs a rebuild, which must succeed if nothing else is wrong or was wrong a moment ago.
func rebuild(w *world, _ *rand.Rand) (func() string, error) {
	alone := w.alone() && !w.lock(w.t.Context())
	b := w.startRebuild()
	swapped, err := w.await(b)
	if err != nil && alone && w.alone() {
		return nothing, err
	}
	if err == nil {
		w.rebuildTook.Store(b.took)
	}
	return saw("%s", swapped), nil
}

// caught starts a rebuild and returns in the middle of it: some time after it took its lock, because before
// that it has nothing in Redis. If it fails because of another fault, or has already ended, another one is
// started. The time is a fraction of the last rebuild's duration, so that the end is also hit sometimes.
// nil: none was caught.
func (w *world) caught(r *rand.Rand) *rebuilding {
	part := r.Float64()
	for deadline := time.Now().Add(lockedWithin); time.Now().Before(deadline); {
		was := w.locked(w.t.Context())
		b := w.startRebuild()
		if !w.locks(b, was, deadline) {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case <-time.After(time.Duration(part * float64(w.rebuildTook.Load()) * float64(time.Millisecond))):
			return b
		case <-b.Done():
			part /= 2
			if _, err := w.await(b); err == nil {
				w.rebuildTook.Store(b.took)
			}
		}
	}
	return nil
}

// locks waits until a rebuild has the lock, which another one or none held before. It returns false if the
// rebuild has ended; one without the lock at the deadline is killed.
func (w *world) locks(b *rebuilding, was []string, deadline time.Time) bool {
	for b.Running() {
		for shard, now := range w.locked(w.t.Context()) {
			if now != "" && now != was[shard] {
				return true
			}
		}
		if time.Now().After(deadline) {
			b.Kill()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

func killRebuild(w *world, r *rand.Rand) (func() string, error) {
	b := w.caught(r)
	if b == nil {
		return nothing, nil
	}
	ran := b.Running()
	b.Kill()
	keys := w.left(b)
	if !ran || len(keys) == 0 {
		return nothing, nil
	}
	redis := w.store.at(w.t.Context())
	if slices.ContainsFunc(keys, func(key string) bool {
		return strings.HasSuffix(key, ":schema") && redis.Get(w.t.Context(), key).Val() == "swapped"
	}) {
		return saw("it had swapped, and left %d keys", len(keys)), nil
	}
	return saw("it left %d keys", len(keys)), nil
}

func pauseRebuild(w *world, r *rand.Rand) (func() string, error) {
	b := w.caught(r)
	if b == nil {
		return nothing, nil
	}
	b.Signal(w.t, syscall.SIGSTOP)
	keys := w.left(b)
	slept := between(r, time.Second, 6*time.Second)
	time.Sleep(slept)
	ran := b.Running()
	b.Signal(w.t, syscall.SIGCONT)
	swapped, err := w.await(b)
	if !ran || len(keys) == 0 {
		return nothing, nil
	}
	if err != nil {
		return saw("it slept for %s, and then: %v", seconds(slept), err), nil
	}
	return saw("it slept for %s; %s", seconds(slept), swapped), nil
}

// leftovers returns the keys of rebuilds in Redis, as far as Redis answers.
func (w *world) leftovers(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found := map[string]bool{} // a key may occur twice
	err := w.place.EachName(ctx, func(key, name string) {
		if strings.HasPrefix(name, "~") && !strings.HasPrefix(name, "~try:") {
			found[key] = true
		}
	})
	return slices.Sorted(maps.Keys(found)), err
}

// left returns the keys of a running or killed rebuild.
func (w *world) left(b *rebuilding) []string {
	all, _ := w.leftovers(w.t.Context()) // keys that are not seen are no effect
	return slices.DeleteFunc(all, func(key string) bool { return slices.Contains(b.others, key) })
}

// lock reports whether a rebuild's lock exists, as far as Redis answers. A killed rebuild keeps its lock
// until the lease ends, and a rollback of Redis may bring an old lock back.
func (w *world) lock(ctx context.Context) bool {
	return slices.ContainsFunc(w.locked(ctx), func(text string) bool { return text != "" })
}

// locked returns the content of each shard's lock; empty if there is none or it is unknown.
func (w *world) locked(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	all, redis := make([]string, w.place.Shards()), w.store.at(ctx)
	var asked sync.WaitGroup
	for shard := range all {
		asked.Go(func() { all[shard] = redis.Get(ctx, w.place.KeyIn(shard, "~rebuild")).Val() })
	}
	asked.Wait()
	return all
}

// nothingStays checks that all keys that killed rebuilds have left will expire soon, and removes them
// without waiting for that.
func (w *world) nothingStays(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	redis := w.store.at(ctx)
	keys, err := w.leftovers(ctx)
	if err != nil {
		t.Errorf("look for what rebuilds have left: %v", err)
	}
	for _, key := range keys {
		left, err := redis.PTTL(ctx, key).Result()
		if err != nil || left > staysFor(key, redis.Get(ctx, key).Val()) || left == -1 {
			t.Errorf("a rebuild's key stays: %s has %v to live (%v)", key, left, err)
		}
		if err := redis.Unlink(ctx, key).Err(); err != nil {
			t.Errorf("remove %s: %v", key, err)
		}
	}
}

// staysFor returns the maximum lifetime of a killed rebuild's key: its lease, except for the mark that only
// a swap leaves.
func staysFor(key, text string) time.Duration {
	if strings.HasSuffix(key, ":schema") && text == "swapped" {
		return markFor
	}
	return outlives
}

// alone reports whether nothing but a rebuild happens in this round.
func (w *world) alone() bool { return !w.disturbed.Load() }

// remedy rebuilds as an operator does, and repeats that if another fault of this round makes it fail. It
// rebuilds in any case, because another fault may prevent a halt from being reported.
func (w *world) remedy(unlocked bool) (swapped string, err error) {
	for begun := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		b := w.startRebuild()
		if swapped, err = w.await(b); err == nil {
			w.rebuildTook.Store(b.took)
			return swapped, nil
		}
		if unlocked && w.single.Load() || time.Since(begun) > rebuildWithin {
			return "", err
		}
	}
}
