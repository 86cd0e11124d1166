package chaos

// Members who are banned, and shown again, while everything else goes wrong. Nothing is wrong with
// that by itself. The topic says at the end who is hidden, and holds what commands have reported as
// recorded.

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

// order is what a command was to bring about, and whether it reported that it is recorded.
type order struct{ banned, recorded bool }

const (
	inForceWithin = 30 * time.Second // in Redis, once nothing else is wrong
	alwaysBanned  = ":m0"            // so that somebody is, whatever the plan has
)

// banFirst has members banned before any consumer runs: each of them begins with a topic to read.
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
		board = readBoards[r.IntN(len(readBoards))]
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

// change bans somebody, or takes that back, half of the times in the middle of a sweep. It has had
// an effect once Redis holds it, which nothing but a fault of this round may keep for longer.
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

// give has the built program carry out an order. It returns whether that is in force in Redis,
// where it waits for it.
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
	// As readers, it isn't in the consumers' hurry.
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

// isHidden reports whether Redis holds a ban, all through the member's windows.
func (w *world) isHidden(who string) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), answersWithin)
	defer cancel()
	_, member, _ := strings.Cut(who, ":")
	return w.store.at(ctx).HGet(ctx, w.place.KeyOf(member, "banned"), who).Val() == "hidden"
}

// recall has the topic say who is banned, which the standings are compared by, and waits until
// Redis is in line with it.
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
