package chaos

// This file deletes a board, or its hidden set. Partitions with an event for it halt and report that
// everywhere an operator looks, and the reported remedy works.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/test/oracle"
)

// The fault lasts as long as an operator takes. Afterwards, nothing may take Redis back into that time,
// when no operator would help. So it is never combined with a fault of Redis, and its result is on disk
// before it ends.
var boardFaults = []fault{
	{kind: "Redis: a board deleted, rebuilt", group: ofRebuilds, apart: []string{ofRedis}, do: deleteBoard},
}

func deleteBoard(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	unlocked := !w.lock(ctx)
	shard := 0
	if n := w.place.Shards(); n > 1 {
		shard = r.IntN(n)
	}
	board, err := w.liveBoard(ctx, shard, r)
	if err != nil || board == "" {
		return nothing, err
	}
	set := board
	if hidden := board + hiddenSuffix; r.IntN(2) == 0 && w.store.at(ctx).Exists(ctx, w.place.KeyIn(shard, hidden)).Val() == 1 {
		set = hidden // the standings of banned members
	}
	if gone, err := w.store.at(ctx).Del(ctx, w.place.KeyIn(shard, set)).Result(); err != nil || gone == 0 {
		return nothing, err
	}
	text, err := w.toldLost(ctx, set)
	swapped, failed := w.remedy(unlocked)
	if failed != nil {
		return nothing, errors.Join(err, fmt.Errorf("rebuild %s, which was deleted: %w", board, failed))
	}
	text += ", then " + swapped
	if failed := w.store.persist(ctx); failed != nil {
		return nothing, errors.Join(err, failed)
	}
	if err != nil {
		if w.single.Load() {
			return nothing, err
		}
		return nothing, nil
	}
	return saw("%s", text), nil
}

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

// hiddenSuffix is the suffix of a window's key for its hidden set.
const hiddenSuffix = ":hidden"

// liveBoard returns a current board that a shard lists, for which events will arrive within the wait; "" if
// there is none.
func (w *world) liveBoard(ctx context.Context, shard int, r *rand.Rand) (string, error) {
	windows, err := w.store.at(ctx).HGetAll(ctx, w.place.KeyIn(shard, "windows")).Result()
	if err != nil {
		return "", fmt.Errorf("list windows: %w", err)
	}
	now, live := time.Now(), []string(nil)
	for board, listing := range windows {
		l, err := oracle.ReadListing(listing)
		if err != nil {
			return "", fmt.Errorf("the window %s: %w", board, err)
		}
		if l.Start <= now.UnixMilli() && now.Add(time.Minute).UnixMilli() < l.End {
			live = append(live, board)
		}
	}
	if len(live) == 0 {
		return "", nil
	}
	slices.Sort(live)
	return live[r.IntN(len(live))], nil
}

// toldLost waits until a partition is halted for a lost board, and checks that /readyz and check report it
// with the remedy.
func (w *world) toldLost(ctx context.Context, set string) (string, error) {
	board := strings.TrimSuffix(set, hiddenSuffix)
	const within, reason, remedy = 20 * time.Second, "board_lost", "consumer rebuild"
	begun := time.Now()
	var last error
	for {
		reasons := 0
		for _, c := range w.running() {
			_, why, err := c.Ready(ctx)
			last = err
			for _, r := range why {
				if r.Reason == reason && strings.Contains(r.What, board) && strings.Contains(r.Remedy, remedy) {
					reasons++
				}
			}
		}
		if reasons > 0 {
			break
		}
		if time.Since(begun) > within {
			return "", errors.Join(fmt.Errorf("%s is deleted, and no /readyz says so with its remedy after %v", set, within), last)
		}
		time.Sleep(50 * time.Millisecond)
	}
	after := time.Since(begun)
	got := w.place.Run(w.t, nil, "check")
	if out := strings.Join(strings.Fields(got.Stdout), " "); got.Code != 1 || !strings.Contains(out, reason) || !strings.Contains(out, board) || !strings.Contains(out, remedy) {
		return "", fmt.Errorf("%s is deleted, and check doesn't say so with its remedy (exit code %d):\n%s%s", set, got.Code, out, got.Stderr)
	}
	return fmt.Sprintf("%s halted its partitions after %s, check said so", set, seconds(after)), nil
}
