package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

var redisFaults = []fault{
	{kind: "Redis: killed, started again", group: ofRedis, modes: []string{plain}, do: killRedis},
	{kind: "Redis: its machine dies, the end of its AOF is lost", group: ofRedis, modes: []string{plain}, do: loseRedisTail},
	{kind: "Redis: an orderly failover", group: ofRedis, modes: []string{sentinel}, do: failOver},
	{kind: "Redis: the master dies", group: ofRedis, modes: []string{sentinel}, do: killMaster},
	{kind: "Redis: the master dies, its replica was behind", group: ofRedis, modes: []string{sentinel}, do: killMasterAhead},
	{kind: "Redis: killed, starts with an old RDB", group: ofRedis, modes: []string{rdb}, do: goBack},
	{kind: "Redis: killed, starts empty", group: ofRedis, modes: []string{rdb}, do: wipe},
	{kind: "Redis: hangs", group: ofRedis, do: pauseRedis},
	{kind: "Redis: out of memory", group: ofRedis, do: fillRedis},
	{kind: "Redis: SCRIPT FLUSH", group: ofRedis, do: flushScripts},
	{kind: "Redis: CLIENT KILL", group: ofRedis, do: killClients},
}

// restarted kills a server and starts it with start, while consumers cannot reach it, so that its content
// can be determined. It returns the change of its run id, and by how many offsets its ledger went back.
func restarted(w *world, n *node, away time.Duration, start func() error) (run string, back int64, err error) {
	ctx := w.t.Context()
	before, ledger := n.run(ctx), n.ledger(ctx, w.place)
	n.network.cut()
	// Calls sent before the cut may have moved the ledger meanwhile.
	if now := n.ledger(ctx, w.place); now != nil {
		ledger = now
	}
	n.server.Kill()
	time.Sleep(away)
	err = start()
	after := n.run(ctx)
	back = behind(n.ledger(ctx, w.place), ledger)
	if mended := n.network.mend(); err == nil {
		err = mended
	}
	if err != nil || before == "" || after == "" || before == after {
		return "", back, err
	}
	return fmt.Sprintf("run %.6s became %.6s", before, after), back, nil
}

// killRedis kills the server's process. With appendfsync everysec, Redis delays AOF writes by up to 2 s
// while the disk is syncing, and still answers: so a few acknowledged writes may be lost although the
// machine survives.
func killRedis(w *world, r *rand.Rand) (func() string, error) {
	n := w.store.nodes[0]
	run, back, err := restarted(w, n, between(r, 0, 4*time.Second), func() error { n.server.Start(); return nil })
	if run != "" && back > 0 {
		return saw("%s, the ledger went back by %d offsets", run, back), err
	}
	return saw("%s", run), err
}

func loseRedisTail(w *world, r *rand.Rand) (func() string, error) {
	n := w.store.nodes[0]
	_, back, err := restarted(w, n, between(r, 0, 2*time.Second), func() error {
		_, err := n.loseTail(1 + r.Int64N(400<<10))
		n.server.Start()
		return err
	})
	return wentBack(back, err)
}

// awaitBehind waits until something has been counted that a past state lacks. It gives up soon, because
// another fault may prevent all counting.
func awaitBehind(by func() int64) int64 {
	for deadline := time.Now().Add(4 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if n := by(); n > 0 || time.Now().After(deadline) {
			return n
		}
	}
}

// wentBack is the effect of a return to a past state.
func wentBack(back int64, err error) (func() string, error) {
	if err != nil || back == 0 {
		return nothing, err
	}
	return saw("the ledger went back by %d offsets", back), nil
}

func goBack(w *world, r *rand.Rand) (func() string, error) {
	n := w.store.nodes[0]
	dump := w.store.dumps[r.IntN(len(w.store.dumps))]
	awaitBehind(func() int64 { return behind(dump.ledger, n.ledger(w.t.Context(), w.place)) })
	_, back, err := restarted(w, n, between(r, 0, 2*time.Second), func() error { n.server.Restart(dump.rdb); return nil })
	return wentBack(back, err)
}

func wipe(w *world, r *rand.Rand) (func() string, error) {
	n := w.store.nodes[0]
	_, back, err := restarted(w, n, between(r, 0, 2*time.Second), func() error { n.server.Restart(nil); return nil })
	return wentBack(back, err)
}

// ready waits until a failover is possible: the previous master must follow the new one.
func ready(w *world) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 40*time.Second)
	defer cancel()
	for {
		wrong := w.store.unready(ctx)
		if wrong == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no failover is possible: %s", wrong)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// succeeds waits until the Sentinels report next as the master, and next itself has this role.
func succeeds(w *world, next *node) (time.Duration, error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), 40*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if w.store.master(ctx) == next && section(ctx, next.direct, "replication")["role"] == "master" {
			return time.Since(begun), nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s isn't the master after %v", next.server.Addr(), time.Since(begun))
}

func failOver(w *world, _ *rand.Rand) (func() string, error) {
	if err := ready(w); err != nil {
		return nothing, err
	}
	ctx := w.t.Context()
	next := w.store.replica(ctx)
	if err := w.store.sentinels[0].Failover(ctx, masterName).Err(); err != nil {
		return nothing, fmt.Errorf("ask for a failover: %w", err)
	}
	after, err := succeeds(w, next)
	if err != nil {
		return nothing, err
	}
	return saw("the replica is the master after %.1f s", after.Seconds()), nil
}

func killMaster(w *world, r *rand.Rand) (func() string, error) { return masterDies(w, r, 0) }

func killMasterAhead(w *world, r *rand.Rand) (func() string, error) {
	return masterDies(w, r, between(r, 500*time.Millisecond, 2500*time.Millisecond))
}

// masterDies kills the master, whose replica has received nothing for the time deaf, and starts it again
// once its successor is the master. Only the replica's data is left then.
func masterDies(w *world, r *rand.Rand, deaf time.Duration) (func() string, error) {
	if err := ready(w); err != nil {
		return nothing, err
	}
	ctx := w.t.Context()
	master, next := w.store.master(ctx), w.store.replica(ctx)
	if deaf > 0 {
		if err := next.direct.ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil {
			return nothing, fmt.Errorf("detach the replica: %w", err)
		}
		time.Sleep(deaf)
	}
	isBehind := func() int64 { return behind(next.ledger(ctx, w.place), master.ledger(ctx, w.place)) }
	back := isBehind()
	if deaf > 0 && back == 0 {
		back = awaitBehind(isBehind)
	}
	master.server.Kill()
	after, err := succeeds(w, next)
	time.Sleep(between(r, 0, 2*time.Second))
	master.server.Start() // it is empty, and learns that it is a replica now
	if err != nil {
		return nothing, err
	}
	if deaf > 0 && back == 0 {
		return nothing, nil
	}
	return saw("the replica, behind by %d offsets, is the master after %.1f s", back, after.Seconds()), nil
}

// pauseRedis suspends Redis. With Sentinels or a cluster, the replica takes over, and the old master wakes
// up with calls that it received before.
func pauseRedis(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	master := w.store.target(ctx, w.place, r)
	master.server.Pause()
	time.Sleep(between(r, 1500*time.Millisecond, 6*time.Second))
	hangs, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	err := master.direct.Ping(hangs).Err()
	cancel()
	master.server.Resume()
	if err == nil {
		return nothing, nil
	}
	if w.store.mode == cluster {
		if err := w.store.heal(ctx); err != nil {
			return nothing, err
		}
	}
	return func() string {
		if w.store.mode == cluster && !w.store.isMaster(ctx, master) || w.store.mode != cluster && w.store.master(ctx) != master {
			return "it didn't answer, and the replica took over"
		}
		return "it didn't answer"
	}, nil
}

// fillRedis makes Redis refuse every write.
func fillRedis(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	n := w.store.target(ctx, w.place, r)
	before := n.errors(ctx, "OOM")
	if err := n.direct.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		return nothing, fmt.Errorf("set maxmemory: %w", err)
	}
	time.Sleep(between(r, 500*time.Millisecond, 5*time.Second))
	refused := n.errors(ctx, "OOM") - before
	if err := n.direct.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		return nothing, fmt.Errorf("unset maxmemory: %w", err)
	}
	if refused <= 0 {
		return nothing, nil
	}
	return saw("%d calls were refused for memory", refused), nil
}

func flushScripts(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	n := w.store.target(ctx, w.place, r)
	before := n.errors(ctx, "NOSCRIPT")
	if err := n.direct.ScriptFlush(ctx).Err(); err != nil {
		return nothing, fmt.Errorf("flush scripts: %w", err)
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if met := n.errors(ctx, "NOSCRIPT") - before; met > 0 {
			return saw("%d calls met no script", met), nil
		}
	}
	return nothing, nil
}

func killClients(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	killed := int64(0)
	for range 1 + r.IntN(5) {
		n, err := w.store.target(ctx, w.place, r).direct.ClientKillByFilter(ctx, "TYPE", "normal").Result()
		if err != nil {
			return nothing, fmt.Errorf("kill clients: %w", err)
		}
		killed += n
		time.Sleep(between(r, 0, 400*time.Millisecond))
	}
	if killed == 0 {
		return nothing, nil
	}
	return saw("%d connections ended", killed), nil
}
