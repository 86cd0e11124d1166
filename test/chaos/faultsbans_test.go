package chaos

// This file bans and unbans members while everything else goes wrong. A ban is not a fault by itself. At
// the end, the topic defines who is hidden, and must contain what commands have reported as recorded.

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var banFaults = []fault{
	{kind: "a member is banned", group: ofBans, calm: true, do: ban},
	{kind: "a member is shown again", group: ofBans, calm: true, do: unban},
}

// order is the intended result of a command, and whether the command reported it as recorded.
type order struct{ banned, recorded bool }

const (
	inForceWithin = 30 * time.Second // in Redis, if nothing else is wrong
	alwaysBanned  = ":m0"            // so that at least one member is banned, whatever the plan is
)

// banFirst bans members before any consumer runs, so that each consumer starts with a topic to read.
func (w *world) banFirst(t *testing.T) {
	t.Helper()
	for _, who := range []string{alwaysBanned, ":m1", "eu:m2", "arena:m3", "global:m4", ":m5"} {
		if _, err := w.give(who, true, 0); err != nil {
			t.Fatalf("ban %s: %v", who, err)
		}
	}
}

func ban(w *world, r *rand.Rand) (func() string, error) {
	board := ""
	if r.IntN(2) == 0 {
		board = []string{"global", "eu", "asia", "arena", "ladder"}[r.IntN(5)]
	}
	return w.change(fmt.Sprintf("%s:m%d", board, r.IntN(members)), true, r)
}

func unban(w *world, r *rand.Rand) (func() string, error) {
	var all []string
	for who, o := range w.orders {
		if who != alwaysBanned && o.banned && o.recorded {
			all = append(all, who)
		}
	}
	if len(all) == 0 {
		return nothing, nil
	}
	slices.Sort(all)
	return w.change(all[r.IntN(len(all))], false, r)
}

// change bans or unbans a member, half of the time in the middle of a sweep. It has an effect once Redis
// agrees; only another fault of the round may delay that.
func (w *world) change(who string, banned bool, r *rand.Rand) (func() string, error) {
	if r.IntN(2) == 0 {
		w.sweeping(w.t.Context())
	}
	begun := time.Now()
	done, err := w.give(who, banned, inForceWithin)
	took := time.Since(begun)
	if err == nil && !done {
		err = fmt.Errorf("it isn't in force after %v", inForceWithin)
	}
	if err != nil && w.single.Load() {
		return nothing, fmt.Errorf("%s: %w", who, err)
	}
	return func() string {
		if o := w.orders[who]; !o.recorded || o.banned != banned {
			return ""
		}
		for deadline := time.Now().Add(inForceWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if w.isHidden(who) == banned {
				return fmt.Sprintf("%s: hidden is %v, the command took %s", who, banned, seconds(took))
			}
		}
		return ""
	}, nil
}

// give runs the built program's command for an order. If it waits, it returns whether the order is in force
// in Redis.
func (w *world) give(who string, banned bool, wait time.Duration) (done bool, err error) {
	board, member, _ := strings.Cut(who, ":")
	args := []string{"unban", member, "--wait", wait.String(), "--json"}
	if banned {
		args = append(args, "--reason", "chaos")
		args[0] = "ban"
	}
	if board != "" {
		args = append(args, "--board", board)
	}
	w.orders[who] = order{banned: banned}
	// The command has more time than consumers.
	got := w.place.Run(w.t, map[string]string{"redis.timeout": "5s", "kafka.timeout": "10s"}, args...)
	if got.Code != 0 {
		return false, fmt.Errorf("exit code %d: %s", got.Code, strings.TrimSpace(got.Stderr))
	}
	var said struct{ Done bool }
	if err := json.Unmarshal([]byte(got.Stdout), &said); err != nil {
		return false, fmt.Errorf("%w: %s", err, got.Stdout)
	}
	w.orders[who] = order{banned: banned, recorded: true}
	return said.Done, nil
}

// isHidden reports whether Redis has applied a ban in all of the member's windows.
func (w *world) isHidden(who string) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), answersWithin)
	defer cancel()
	_, member, _ := strings.Cut(who, ":")
	return w.store.at(ctx).HGet(ctx, w.place.KeyOf(member, "banned"), who).Val() == "hidden"
}

// recall reads the bans topic, whose bans the comparison of the standings uses, and waits until Redis
// agrees with it.
func (w *world) recall(t testing.TB) {
	t.Helper()
	bans := w.place.Bans(t)
	w.place.Banned = bans
	for who, o := range w.orders {
		if o.recorded && bans[who] != o.banned {
			t.Errorf("%s: a command recorded that banned is %v, and the topic has %v", who, o.banned, bans[who])
		}
	}
	w.place.AwaitBans(t, bans, settledWithin)
}
