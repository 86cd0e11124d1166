package chaos

// This file moves slots of a cluster while they are written to.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// moveSlots moves the slots of some shards under traffic, one after another. Half of the time each stops when half
// of its keys have moved, and continues after a while.
func moveSlots(w *world, r *rand.Rand) (func() string, error) {
	if err := w.store.heal(w.t.Context()); err != nil {
		return nothing, err
	}
	slots, stop, moved := 1+r.IntN(3), time.Duration(0), 0
	if r.IntN(2) == 0 {
		slots, stop = 1, between(r, 500*time.Millisecond, 6*time.Second)
	}
	for range slots {
		keys, err := w.move(r, stop)
		if err != nil {
			return nothing, err
		}
		moved += keys
	}
	if moved == 0 {
		return nothing, nil
	}
	return saw("%d slots with %d keys, half of them elsewhere for %s", slots, moved, seconds(stop)), nil
}

// moving is a slot that moves from one master to another.
type moving struct {
	slot     int
	from, to *node
	others   []*node // the other masters, including to
	keys     int     // number of keys in the slot at the start
}

// opened prepares the move of a shard's slot.
func (w *world) opened(r *rand.Rand) (*moving, error) {
	ctx := w.t.Context()
	m := &moving{slot: w.place.Slot(r.IntN(w.place.Shards()))}
	views := w.store.views(ctx, nil)
	is := owner(views, m.slot)
	for _, v := range views {
		if v.master && v != is {
			m.others = append(m.others, v.node)
		}
	}
	if is == nil || len(m.others) == 0 {
		return nil, fmt.Errorf("nobody has the slot %d, or nobody else could", m.slot)
	}
	m.from, m.to = is.node, m.others[r.IntN(len(m.others))]
	if err := m.to.direct.Do(ctx, "cluster", "setslot", m.slot, "importing", m.from.id).Err(); err != nil {
		return nil, fmt.Errorf("begin to import the slot %d: %w", m.slot, err)
	}
	if err := m.from.direct.Do(ctx, "cluster", "setslot", m.slot, "migrating", m.to.id).Err(); err != nil {
		return nil, fmt.Errorf("begin to migrate the slot %d: %w", m.slot, err)
	}
	all, err := m.from.direct.ClusterCountKeysInSlot(ctx, m.slot).Result()
	if err != nil {
		return nil, fmt.Errorf("count the keys in the slot %d: %w", m.slot, err)
	}
	m.keys = int(all)
	return m, nil
}

// move moves a shard's slot from its master to another, as redis-cli's reshard does, and pauses halfway. It
// returns the number of moved keys; 0 if a master was replaced meanwhile, as happens on a busy machine.
func (w *world) move(r *rand.Rand, stop time.Duration) (keys int, err error) {
	m, err := w.opened(r)
	if err != nil {
		return 0, err
	}
	if keys, err = w.moves(r, m, stop); err == nil {
		return keys, nil
	}
	ctx := w.t.Context()
	if w.store.isMaster(ctx, m.from) && w.store.isMaster(ctx, m.to) {
		return 0, err
	}
	if failed := w.fix(r, m); failed != nil {
		return 0, errors.Join(err, failed)
	}
	_, failed := w.remedy(false)
	if failed != nil {
		return 0, errors.Join(err, failed)
	}
	return 0, nil
}

func (w *world) moves(r *rand.Rand, m *moving, stop time.Duration) (keys int, err error) {
	ctx := w.t.Context()
	if keys, err = migrate(ctx, r, m.slot, m.from, m.to, (m.keys+1)/2); err != nil {
		return 0, err
	}
	time.Sleep(stop)
	more, err := migrate(ctx, r, m.slot, m.from, m.to, -1)
	if err != nil {
		return 0, err
	}
	// A replica may show no keys because it has not received any yet.
	for _, n := range []*node{m.from, m.to} {
		if !w.store.isMaster(ctx, n) {
			return 0, fmt.Errorf("%s isn't a master any more", n.server.Addr())
		}
	}
	for _, n := range append([]*node{m.to, m.from}, m.others...) {
		if err := n.direct.Do(ctx, "cluster", "setslot", m.slot, "node", m.to.id).Err(); err != nil {
			return 0, fmt.Errorf("tell %s who has the slot %d: %w", n.server.Addr(), m.slot, err)
		}
	}
	return keys + more, nil
}

// fix moves the keys of a slot whose move was interrupted to the slot's master, as redis-cli's fix does
// with --cluster-replace.
func (w *world) fix(r *rand.Rand, m *moving) error {
	ctx := w.t.Context()
	var last error
	for begun := time.Now(); time.Since(begun) < healedWithin; time.Sleep(50 * time.Millisecond) {
		if last = w.fixOnce(ctx, r, m); last == nil {
			return w.store.heal(ctx)
		}
	}
	return fmt.Errorf("fix the slot %d: %w", m.slot, last)
}

func (w *world) fixOnce(ctx context.Context, r *rand.Rand, m *moving) error {
	views := w.store.views(ctx, nil)
	is := owner(views, m.slot)
	if is == nil {
		return errors.New("no master has it")
	}
	command := func(n *node, words ...any) error {
		if err := n.direct.Do(ctx, append([]any{"cluster", "setslot", m.slot}, words...)...).Err(); err != nil {
			return fmt.Errorf("setslot %v at %s: %w", words, n.server.Addr(), err)
		}
		return nil
	}
	if err := command(is.node, "stable"); err != nil {
		return err
	}
	for _, v := range views {
		if !v.master || v == is {
			continue
		}
		// The importing node accepts no claim of another node until SETSLOT NODE names the owner.
		if err := errors.Join(command(v.node, "node", is.node.id), command(v.node, "importing", is.node.id)); err != nil {
			return err
		}
		if _, err := migrate(ctx, r, m.slot, v.node, is.node, -1, "replace"); err != nil {
			return err
		}
		if err := command(v.node, "stable"); err != nil {
			return err
		}
	}
	return nil
}

// dieHalfWay kills a master when some of a shard's keys are on another node, of which its replica knows
// nothing: consumers find them missing, and may create them again. An operator moves the others back and
// rebuilds.
func dieHalfWay(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	if err := w.store.heal(ctx); err != nil {
		return nothing, err
	}
	unlocked := !w.lock(ctx)
	m, err := w.opened(r)
	if err != nil {
		return nothing, err
	}
	next := w.store.follower(ctx, m.from)
	if next == nil {
		return nothing, fmt.Errorf("%s has no replica", m.from.server.Addr())
	}
	there, err := migrate(ctx, r, m.slot, m.from, m.to, 1+r.IntN(max(m.keys-1, 1)))
	if err != nil {
		return nothing, err
	}
	m.from.server.Kill()
	_, err = w.tookOver(next)
	m.from.server.Restart(nil)
	time.Sleep(between(r, 0, 4*time.Second))
	if err = errors.Join(err, w.fix(r, m)); err != nil {
		return nothing, err
	}
	swapped, err := w.remedy(unlocked)
	if err != nil {
		return nothing, fmt.Errorf("rebuild a shard that was in two places: %w", err)
	}
	if there == m.keys {
		return nothing, nil
	}
	return saw("%d of %d keys were elsewhere and came back, then %s", there, m.keys, swapped), nil
}

// migrate moves a number of keys of a slot, a few at a time; all if most is negative. more holds further
// arguments of MIGRATE.
func migrate(ctx context.Context, r *rand.Rand, slot int, from, to *node, most int, more ...any) (moved int, err error) {
	host, port, _ := net.SplitHostPort(to.server.Addr())
	for most < 0 || moved < most {
		n := 1 + r.IntN(5)
		if most >= 0 {
			n = min(n, most-moved)
		}
		keys, err := from.direct.ClusterGetKeysInSlot(ctx, slot, n).Result()
		if err != nil {
			return moved, fmt.Errorf("list keys in the slot %d: %w", slot, err)
		}
		if len(keys) == 0 {
			return moved, nil
		}
		command := []any{"migrate", host, port, "", 0, 5000}
		command = append(append(command, more...), "keys")
		for _, key := range keys {
			command = append(command, key)
		}
		if err := from.direct.Do(ctx, command...).Err(); err != nil {
			return moved, fmt.Errorf("migrate %v: %w", keys, err)
		}
		moved += len(keys)
		time.Sleep(between(r, 0, 40*time.Millisecond))
	}
	return moved, nil
}
