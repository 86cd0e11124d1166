package chaos

// This file disturbs a cluster: masters die, hang, lose their data or go back in time while others keep
// theirs.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

var clusterFaults = []fault{
	{kind: "cluster: a replica takes over, by request or by force", group: ofRedis, modes: []string{cluster}, do: clusterFailOver},
	{kind: "cluster: the master dies", group: ofRedis, modes: []string{cluster}, do: clusterMasterDies(false)},
	{kind: "cluster: the master dies, its replica was behind", group: ofRedis, modes: []string{cluster}, do: clusterMasterDies(true)},
	{kind: "cluster: two masters die", group: ofRedis, modes: []string{cluster}, do: killTwoMasters},
	{kind: "cluster: a master is killed, starts empty", group: ofRedis, modes: []string{cluster}, do: wipeMaster},
	{kind: "cluster: a master is killed, starts with an old RDB", group: ofRedis, modes: []string{cluster}, do: masterGoesBack},
	{kind: "cluster: FLUSHALL of a master", group: ofRedis, modes: []string{cluster}, do: flushMaster},
	{kind: "cluster: a slot moves, also with a stop half way", group: ofRedis, modes: []string{cluster}, do: moveSlots},
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

// clusterFailOver makes a replica take over from a living master: in order, or without a vote, so that writes that
// it has not received are lost.
func clusterFailOver(w *world, r *rand.Rand) (func() string, error) {
	_, replica, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	command := []any{"cluster", "failover"}
	if how := []string{"", "FORCE", "TAKEOVER"}[r.IntN(3)]; how != "" {
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

// clusterMasterDies kills a master, whose replica is behind if it is deaf: it has received nothing for a while. The
// master starts again, empty, once its successor is the master.
func clusterMasterDies(isDeaf bool) func(*world, *rand.Rand) (func() string, error) {
	return func(w *world, r *rand.Rand) (func() string, error) { return w.clusterMasterDies(r, isDeaf) }
}

func (w *world) clusterMasterDies(r *rand.Rand, isDeaf bool) (func() string, error) {
	master, next, err := w.pair(r)
	if err != nil {
		return nothing, err
	}
	ctx, back := w.t.Context(), int64(0)
	if isDeaf {
		// The replica is suspended, and what the master sends to it is lost with the connection.
		next.server.Pause()
		if _, err := master.direct.ClientKillByFilter(ctx, "TYPE", "replica").Result(); err != nil {
			next.server.Resume()
			return nothing, fmt.Errorf("end the replica's connection: %w", err)
		}
		before := master.ledger(ctx, w.place) // the replica has at most this
		time.Sleep(between(r, 500*time.Millisecond, 2500*time.Millisecond))
		back = awaitBehind(func() int64 { return behind(before, master.ledger(ctx, w.place)) })
	}
	master.server.Kill()
	if isDeaf {
		next.server.Resume()
	}
	after, err := w.tookOver(next)
	time.Sleep(between(r, 0, 2*time.Second))
	master.server.Restart(nil)
	if err = errors.Join(err, w.store.heal(ctx)); err != nil {
		return nothing, err
	}
	if isDeaf && back == 0 {
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
