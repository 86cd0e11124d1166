package chaos

// This file disturbs a cluster: masters die, hang, lose their data or go back in time while others keep
// theirs, and slots move while they are written to.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

var clusterFaults = []fault{
	{kind: "cluster: an orderly failover", group: ofRedis, modes: []string{cluster}, do: clusterFailOver},
	{kind: "cluster: a replica takes over by force", group: ofRedis, modes: []string{cluster}, do: clusterTakeOver},
	{kind: "cluster: the master dies", group: ofRedis, modes: []string{cluster}, do: killClusterMaster},
	{kind: "cluster: the master dies, its replica was behind", group: ofRedis, modes: []string{cluster}, do: killClusterMasterAhead},
	{kind: "cluster: two masters die", group: ofRedis, modes: []string{cluster}, do: killTwoMasters},
	{kind: "cluster: a master is killed, starts empty", group: ofRedis, modes: []string{cluster}, do: wipeMaster},
	{kind: "cluster: a master is killed, starts with an old RDB", group: ofRedis, modes: []string{cluster}, do: masterGoesBack},
	{kind: "cluster: FLUSHALL of a master", group: ofRedis, modes: []string{cluster}, do: flushMaster},
	{kind: "cluster: a slot moves", group: ofRedis, modes: []string{cluster}, do: moveSlots},
	{kind: "cluster: a slot stops half way, then moves", group: ofRedis, modes: []string{cluster}, do: moveHalf},
	{kind: "cluster: a master dies with a slot half way, fixed, rebuilt", group: ofRebuilds, apart: []string{ofRedis}, modes: []string{cluster}, do: dieHalfWay},
}

// pair returns a master and its replica, once a failover is possible in the cluster.
func (w *world) pair(r *rand.Rand) (master, replica *node, err error) {
	ctx := w.t.Context()
	if err := w.store.heal(ctx); err != nil {
		return nil, nil, err
	}
	master = w.store.target(ctx, w.place, r)
	if replica = w.store.follower(ctx, master); replica == nil {
		return nil, nil, fmt.Errorf("%s has no replica", master.server.Addr())
	}
	return master, replica, nil
}

// tookOver waits until a node is a master.
func (w *world) tookOver(n *node) (time.Duration, error) {
	begun := time.Now()
	for time.Since(begun) < 40*time.Second {
		if w.store.isMaster(w.t.Context(), n) {
			return time.Since(begun), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s isn't a master after %v", n.server.Addr(), time.Since(begun))
}

func clusterFailOver(w *world, r *rand.Rand) (func() string, error) {
	return w.failOverBy(r, "")
}

// clusterTakeOver makes a replica take over from a living master without a vote: writes that it has not
// received are lost.
func clusterTakeOver(w *world, r *rand.Rand) (func() string, error) {
	return w.failOverBy(r, []string{"FORCE", "TAKEOVER"}[r.IntN(2)])
}

func (w *world) failOverBy(r *rand.Rand, how string) (func() string, error) {
	_, replica, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	command := []any{"cluster", "failover"}
	if how != "" {
		command = append(command, how)
	}
	if err := replica.direct.Do(w.t.Context(), command...).Err(); err != nil {
		return nothing, fmt.Errorf("%v: %w", command, err)
	}
	after, err := w.tookOver(replica)
	if err = errors.Join(err, w.store.heal(w.t.Context())); err != nil {
		return nothing, err
	}
	return saw("the replica is the master after %.1f s", after.Seconds()), nil
}

func killClusterMaster(w *world, r *rand.Rand) (func() string, error) {
	return w.clusterMasterDies(r, 0)
}

func killClusterMasterAhead(w *world, r *rand.Rand) (func() string, error) {
	return w.clusterMasterDies(r, between(r, 500*time.Millisecond, 2500*time.Millisecond))
}

// clusterMasterDies kills a master whose replica has received nothing for a while, and starts it again,
// empty, once its successor is the master.
func (w *world) clusterMasterDies(r *rand.Rand, deaf time.Duration) (func() string, error) {
	master, next, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	ctx, back := w.t.Context(), int64(0)
	if deaf > 0 {
		// The replica is suspended, and what the master sends to it is lost with the connection.
		next.server.Pause()
		if _, err := master.direct.ClientKillByFilter(ctx, "TYPE", "replica").Result(); err != nil {
			next.server.Resume()
			return nothing, fmt.Errorf("end the replica's connection: %w", err)
		}
		before := master.ledger(ctx, w.place) // the replica has at most this
		time.Sleep(deaf)
		back = awaitBehind(func() int64 { return behind(before, master.ledger(ctx, w.place)) })
	}
	master.server.Kill()
	if deaf > 0 {
		next.server.Resume()
	}
	after, err := w.tookOver(next)
	time.Sleep(between(r, 0, 2*time.Second))
	master.server.Restart(nil)
	if err = errors.Join(err, w.store.heal(ctx)); err != nil {
		return nothing, err
	}
	if deaf > 0 && back == 0 {
		return nothing, nil
	}
	return saw("the replica, behind by %d offsets, is the master after %.1f s", back, after.Seconds()), nil
}

// killTwoMasters leaves the cluster without a majority of masters: no replica is elected, and no node
// serves requests until one of the two is back.
func killTwoMasters(w *world, r *rand.Rand) (func() string, error) {
	first, _, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	ctx := w.t.Context()
	var others []*node
	for _, n := range w.store.nodes {
		if n != first && w.store.isMaster(ctx, n) {
			others = append(others, n)
		}
	}
	second := others[r.IntN(len(others))]
	replicas := []*node{w.store.follower(ctx, first), w.store.follower(ctx, second)}
	dump := first.server.Dump()
	first.server.Kill()
	second.server.Kill()
	time.Sleep(nodeTimeout + between(r, 0, 4*time.Second))
	elected := 0
	for _, n := range replicas {
		if n != nil && w.store.isMaster(ctx, n) {
			elected++
		}
	}
	// The first master comes back with its data, and continues; the other's replica takes over.
	first.server.Restart(dump)
	_, err = w.tookOver(replicas[1])
	second.server.Restart(nil)
	if err = errors.Join(err, w.store.heal(ctx)); err != nil {
		return nothing, err
	}
	if elected > 0 {
		return nothing, nil
	}
	return saw("nobody was elected until one was there again"), nil
}

// startsWith kills a master and starts it with a dump before its replica takes over. The consumers cannot
// reach it until its content is known.
func (w *world) startsWith(r *rand.Rand, n *node, dump []byte) (func() string, error) {
	ctx := w.t.Context()
	n.network.cut()
	ledger := w.store.all(ctx, w.place)
	n.server.Kill()
	time.Sleep(between(r, 0, nodeTimeout/4))
	n.server.Restart(dump)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if at := n.ledger(ctx, w.place); at != nil { // it participates again
			break
		}
	}
	back, stays := behind(w.store.all(ctx, w.place), ledger), w.store.isMaster(ctx, n)
	if err := errors.Join(n.network.mend(), w.store.heal(ctx)); err != nil {
		return nothing, err
	}
	if back == 0 {
		return nothing, nil
	}
	if !stays {
		return saw("its replica took over, the ledger went back by %d offsets", back), nil
	}
	return saw("it is the master still, the ledger went back by %d offsets", back), nil
}

func wipeMaster(w *world, r *rand.Rand) (func() string, error) {
	master, _, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	return w.startsWith(r, master, nil)
}

func masterGoesBack(w *world, r *rand.Rand) (func() string, error) {
	master, _, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	ctx := w.t.Context()
	if r.IntN(2) == 0 { // into a sweep
		w.sweeping(ctx)
	}
	then, dump := master.ledger(ctx, w.place), master.server.Dump()
	time.Sleep(between(r, 0, 3*time.Second))
	awaitBehind(func() int64 { return behind(then, master.ledger(ctx, w.place)) })
	return w.startsWith(r, master, dump)
}

// flushMaster removes the data of a master and its replica, while the others keep theirs.
func flushMaster(w *world, r *rand.Rand) (func() string, error) {
	master, _, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	ctx := w.t.Context()
	before := master.ledger(ctx, w.place)
	if err := master.direct.FlushAll(ctx).Err(); err != nil {
		return nothing, fmt.Errorf("FLUSHALL: %w", err)
	}
	return wentBack(behind(map[string]int64{}, before), nil)
}

// moveSlots moves the slots of some shards under traffic, one after another.
func moveSlots(w *world, r *rand.Rand) (func() string, error) {
	if err := w.store.heal(w.t.Context()); err != nil {
		return nothing, err
	}
	slots := 1 + r.IntN(3)
	moved := 0
	for range slots {
		keys, err := w.move(r, 0)
		if err != nil {
			return nothing, err
		}
		moved += keys
	}
	if moved == 0 {
		return nothing, nil
	}
	return saw("%d slots with %d keys", slots, moved), nil
}

// moveHalf stops when half of the keys have moved, and continues after a while.
func moveHalf(w *world, r *rand.Rand) (func() string, error) {
	if err := w.store.heal(w.t.Context()); err != nil {
		return nothing, err
	}
	stop := between(r, 500*time.Millisecond, 6*time.Second)
	keys, err := w.move(r, stop)
	if err != nil || keys == 0 {
		return nothing, err
	}
	return saw("half of its %d keys were elsewhere for %.1f s", keys, stop.Seconds()), nil
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
