package chaos

// Redis is lost while the log is shorter than the windows: consumers halt, and a restore brings the boards
// back from a snapshot and what the log has had since. It may be killed midway, and started again.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// Nothing may take away what an operator has brought back, nor the log that it is read from: they are of no
// round with a fault of Redis or Kafka. What they leave is on disk before they end. Once the log is cut,
// only a restore helps where Redis is lost: see may.
var restoreFaults = []fault{
	{kind: "Redis: lost, and what the log had first, restored", group: ofRebuilds, apart: []string{ofRedis, ofKafka}, cuts: true,
		modes: []string{plain, sentinel, rdb}, do: func(w *world, r *rand.Rand) (func() string, error) { return loseBoth(w, r, 0) }},
	{kind: "Redis: lost, and what the log had first, the restore killed", group: ofRebuilds, apart: []string{ofRedis, ofKafka}, cuts: true,
		modes: []string{plain, sentinel, rdb}, do: func(w *world, r *rand.Rand) (func() string, error) { return loseBoth(w, r, 1+r.IntN(2)) }},
}

const (
	restoredWithin = 3 * time.Minute // whatever else is wrong
	// haltedWithin is how long consumers have to halt where Redis has nothing and the log no longer has all.
	haltedWithin = 30 * time.Second
)

// snapshots are settings by which consumers take snapshots, and faults too.
func snapshots(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"snapshots.url": "dir:" + filepath.Join(t.TempDir(), "snapshots"), "snapshots.interval": "1m", "snapshots.keep": "2", "snapshots.pause": "1ms",
	}
}

// restoreMemory has a restore know what members have already, which takes more than consumers are given.
var restoreMemory = map[string]string{"fold_memory": "256MiB"}

// may reports whether a fault may come by now. The log is cut in the last quarter of a mode's time, or at
// once where nothing else was asked for; what takes all of the log doesn't come after that.
func (w *world) may(f fault) bool {
	others := func(g fault) bool { return !g.cuts }
	switch {
	case f.cuts:
		return time.Since(w.began) > w.lasts*3/4 || !slices.ContainsFunc(w.of(), others)
	case f.whole:
		return len(w.deleted) == 0
	}
	return true
}

// restoring is what a restore reports, or a dry run of one.
type restoring struct {
	Restored   bool
	Refused    []string
	Snapshot   string
	Standings  int64
	Records    *int64
	Partitions []struct {
		Partition string
		From      int64
		Reach     int64 `json:"snapshot_to"`
	}
}

// loseBoth takes a snapshot, deletes from the log what a restore doesn't need, and loses Redis. Then it
// restores, and kills that some times first.
func loseBoth(w *world, r *rand.Rand, kills int) (func() string, error) {
	ctx := w.t.Context()
	unlocked := !w.lock(ctx)
	if err := w.grow(ctx); err != nil {
		return nothing, err
	}
	if r.IntN(2) == 0 { // to be lost in a sweep
		w.sweeping(ctx)
	}
	plan, err := w.snapshot()
	if err != nil {
		return nothing, err
	}
	cut, err := w.cutLog(plan)
	if err != nil || cut == 0 {
		return nothing, err
	}
	w.store.dumps = nil // none of before the cut may come back
	if err := w.store.master(ctx).direct.FlushAll(ctx).Err(); err != nil {
		return nothing, fmt.Errorf("lose what Redis has: %w", err)
	}
	text := fmt.Sprintf("%d records deleted from the log", cut)
	if r.IntN(2) == 0 {
		halted, err := w.halted(ctx)
		if err != nil && w.single.Load() {
			_, failed := w.restore(false)
			return nothing, errors.Join(err, failed)
		}
		text += halted
	}
	killed := 0
	for range kills {
		hit, err := w.killRestore(r)
		if err != nil {
			return nothing, err
		}
		if hit {
			killed++
		}
	}
	restored, err := w.restore(unlocked && kills == 0 && w.single.Load())
	if err != nil {
		return nothing, err
	}
	if err := w.store.persist(ctx); err != nil {
		return nothing, err
	}
	if killed == 0 && kills > 0 {
		return nothing, nil
	}
	if killed > 0 {
		text += fmt.Sprintf(", killed %d times", killed)
	}
	return saw("%s, %s", text, restored), nil
}

// grow has so much published and counted that there is a log to be cut.
func (w *world) grow(ctx context.Context) error {
	starts, err := w.place.Admin().ListStartOffsets(ctx, w.place.Topic)
	if err != nil {
		return fmt.Errorf("where the log begins: %w", err)
	}
	asked := false
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		ends, err := w.ends(ctx)
		if err != nil {
			return err
		}
		least := int64(math.MaxInt64)
		for partition := range partitions {
			start, _ := starts.Lookup(w.place.Topic, int32(partition))
			least = min(least, ends[partition]-start.Offset)
		}
		if least > duplicates+eventsInBurst/2 {
			break
		}
		if !asked { // no more than once: what is published has to be counted
			w.producers.burst()
		}
		asked = true
	}
	_, err = w.recovered()
	return err
}

// snapshot takes one, and says from where a restore of the newest would read the log. A consumer may be
// taking one, too, or hold what is rebuilt.
func (w *world) snapshot() (*restoring, error) {
	for begun := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		_, err := w.carry("snapshot", "take")
		if err == nil {
			var plan *restoring
			if plan, err = w.planned(w.carry("restore", "--dry-run", "--json")); err == nil {
				return plan, nil
			}
		}
		if time.Since(begun) > restoredWithin {
			return nil, err
		}
	}
}

// planned reads what a restore printed.
func (w *world) planned(out []byte, err error) (*restoring, error) {
	if err != nil {
		return nil, err
	}
	var said restoring
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return &said, nil
}

// carry has the built program carry a command out to its end.
func (w *world) carry(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(w.t), args...)
	cmd.Env = w.place.Environment(with(w.place.Settings, restoreMemory))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// cutLog deletes from the log what comes before the records that a restore reads, repeats of which have to
// be known, too. The verdict has them from here. It returns how many offsets are gone.
func (w *world) cutLog(plan *restoring) (int64, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	starts, err := w.place.Admin().ListStartOffsets(ctx, w.place.Topic)
	if err != nil {
		return 0, fmt.Errorf("where the log begins: %w", err)
	}
	to, counted, reach, cut := map[int32]int64{}, map[int]int64{}, map[int]int64{}, int64(0)
	positions := w.store.positions(ctx, w.place)
	offsets := kadm.Offsets{}
	for _, p := range plan.Partitions {
		var partition int32
		if _, err := fmt.Sscanf(strings.TrimPrefix(p.Partition, w.place.Topic), "/%d", &partition); err != nil {
			return 0, fmt.Errorf("the partition %q of a plan: %w", p.Partition, err)
		}
		reach[int(partition)], counted[int(partition)] = p.Reach, positions[p.Partition]
		start, _ := starts.Lookup(w.place.Topic, partition)
		if at := p.From - duplicates; at > start.Offset {
			to[partition], cut = at, cut+at-start.Offset
			offsets.Add(kadm.Offset{Topic: w.place.Topic, Partition: partition, At: at, LeaderEpoch: -1})
		}
	}
	if cut == 0 {
		return 0, nil
	}
	var gone []*kgo.Record
	if wrong := differences(w.t, func(t testing.TB) {
		w.place.EachRecord(t, w.place.Topic, func(r *kgo.Record) {
			if r.Offset < to[r.Partition] {
				gone = append(gone, r)
			}
		})
	}); len(wrong) > 0 {
		return 0, fmt.Errorf("read what is to be deleted: %s", strings.Join(wrong, "; "))
	}
	w.deleted = append(w.deleted, gone...)
	// What a sweep had begun that the snapshot met is counted by the restore to its end: a consumer that was
	// lost in it has told of no overflow in the rest.
	w.place.NamedFrom = reach
	w.place.ExcuseOverflows(counted, reach)
	deleted, err := w.place.Admin().DeleteRecords(ctx, offsets)
	if err = errors.Join(err, deleted.Error()); err != nil {
		return 0, fmt.Errorf("delete from the log: %w", err)
	}
	return cut, nil
}

// halted waits until a consumer halts for what the log no longer has, and names the remedy.
func (w *world) halted(ctx context.Context) (string, error) {
	const reason, remedy = "gap", "consumer restore"
	begun := time.Now()
	for last := error(nil); ; time.Sleep(50 * time.Millisecond) {
		for _, c := range w.running() {
			_, why, err := c.Ready(ctx)
			last = err
			for _, r := range why {
				if r.Reason == reason && strings.Contains(r.Remedy, remedy) {
					return fmt.Sprintf(", consumers halted after %s", seconds(time.Since(begun))), nil
				}
			}
		}
		if time.Since(begun) > haltedWithin {
			return "", errors.Join(fmt.Errorf("Redis is lost, the log is cut, and no /readyz says so with its remedy after %v", haltedWithin), last)
		}
	}
}

// restore brings the boards back, and tries again where it is refused for what else is wrong, or for what a
// killed one left: at the first try if it must. No window may lack anything then.
func (w *world) restore(must bool) (string, error) {
	ctx := w.t.Context()
	for begun := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		started := time.Now()
		said, err := w.planned(w.carry("restore", "--yes", "--json"))
		if err == nil && said.Restored && said.Records != nil {
			w.restoreTook.Store(time.Since(started).Milliseconds())
			for field, origin := range w.store.at(ctx).HGetAll(ctx, w.place.KeyIn(0, "origin")).Val() {
				if !strings.HasSuffix(origin, " 0") {
					return "", fmt.Errorf("after a restore %s is shown as incomplete: %s", field, origin)
				}
			}
			return fmt.Sprintf("%d standings restored, and %d records read, in %s", said.Standings, *said.Records, seconds(time.Since(started))), nil
		}
		if err == nil {
			err = fmt.Errorf("a restore says %+v", said)
		}
		if must || time.Since(begun) > restoredWithin {
			return "", err
		}
	}
}

// killRestore kills a restore once it has its lock, at any moment of what is left of it by then. Its minute
// isn't waited for: that all it leaves would be gone by then is looked at, and it is removed.
func (w *world) killRestore(r *rand.Rand) (bool, error) {
	b, err := w.startCommand(restoreMemory, "restore", "--yes", "--json")
	if err != nil {
		return false, err
	}
	if w.locks(b, make([]string, w.place.Shards()), time.Now().Add(lockedWithin)) {
		time.Sleep(time.Duration(0.7 * r.Float64() * float64(w.restoreTook.Load()) * float64(time.Millisecond)))
	}
	ran := b.running()
	b.process.Kill()
	<-b.process.Done()
	if wrong := differences(w.t, w.nothingStays); len(wrong) > 0 {
		return false, fmt.Errorf("a killed restore: %s", strings.Join(wrong, "; "))
	}
	ctx := w.t.Context()
	redis, hold := w.store.at(ctx), w.place.KeyIn(0, "hold") // of consumers
	left, err := redis.PTTL(ctx, hold).Result()
	if err != nil {
		return false, fmt.Errorf("see how long a killed restore holds consumers: %w", err)
	}
	if left > outlives || left == -1 {
		return false, fmt.Errorf("a killed restore holds consumers for %v", left)
	}
	if err := redis.Unlink(ctx, hold).Err(); err != nil {
		return false, fmt.Errorf("remove %s: %w", hold, err)
	}
	return ran, nil
}

func TestTheLogIsCutLateAndWhatTakesAllOfItComesBefore(t *testing.T) {
	t.Parallel()
	cuts, takesAll := fault{cuts: true}, fault{whole: true}
	for name, c := range map[string]struct {
		since               time.Duration
		deleted             []*kgo.Record
		cuts, takesAll, any bool
	}{
		"at first":            {since: time.Second, takesAll: true, any: true},
		"in the last part":    {since: 50 * time.Second, cuts: true, takesAll: true, any: true},
		"once the log is cut": {since: 50 * time.Second, deleted: []*kgo.Record{{}}, cuts: true, any: true},
	} {
		w := &world{mode: rdb, began: time.Now().Add(-c.since), lasts: time.Minute, deleted: c.deleted}
		if w.may(cuts) != c.cuts || w.may(takesAll) != c.takesAll || w.may(fault{}) != c.any {
			t.Errorf("%s: one that cuts, one that takes all and any other may come: %v, %v, %v", name, w.may(cuts), w.may(takesAll), w.may(fault{}))
		}
	}
}
