package rebuild

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/test/harness"
)

// lost is a place whose Redis was lost, and what the log had before its last snapshot.
type lost struct {
	*harness.Place

	directory string
	before    map[int]int64 // by partition, where the log begins
}

// stores are the place's shards as its consumers have them.
func stores(t *testing.T, place *harness.Place) []*ranking.Store {
	t.Helper()
	metadata, err := place.Admin().BrokerMetadata(t.Context())
	must(t, err)
	calendar, err := periods.NewCalendar("UTC", "monday")
	must(t, err)
	c := ranking.Config{
		Client: place.RedisClient(), Prefix: place.Prefix, Shards: ledger.Shards(place.Shards()), Cluster: metadata.Cluster,
		Calendar: calendar, Timeout: within, Periods: map[periods.Period]ranking.Period{},
	}
	for _, p := range []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly} {
		layout, err := codec.New(codec.Readable, p.Length(), 99_999_999)
		must(t, err)
		c.Periods[p] = ranking.Period{Layout: layout, Retention: 400 * 24 * time.Hour}
	}
	return boards.New(c).Shards()
}

// snapshotInTraffic counts the events of three months, takes a snapshot while more come, deletes all of the
// log before that, and has more events counted.
func snapshotInTraffic(t *testing.T, settings map[string]string) *lost {
	t.Helper()
	const partitions, old = 3, 9000
	place := newPlace(t, harness.Options{Partitions: partitions, Settings: settings})
	l := &lost{place, filepath.Join(t.TempDir(), "snapshots"), map[int]int64{}}
	place.Start(t)
	place.Start(t)
	for i := range 3 { // earlier events aren't later in the log
		records := earned(uint64(200+i), old/3, 4000, partitions)
		for j, r := range records {
			at := time.Now().Add(-90*24*time.Hour + time.Duration(i*old/3+j)*90*24*time.Hour/old)
			d := dated(int(r.Partition), at, j*7919%4000, j%9-1)
			records[j] = d
		}
		place.Publish(t, records...)
	}
	place.AwaitCaughtUp(t, within)
	place.AwaitCommitted(t, within)

	stop := l.events(t, 300)
	m, err := snapshot.Store{Files: snapshot.Dir{Path: l.directory}}.Take(t.Context(), stores(t, place), snapshot.Pace{Pause: 10 * time.Millisecond, Lease: time.Minute})
	stop()
	must(t, err)
	place.Publish(t, earned(500, 1000, 4000, partitions)...)
	place.AwaitCaughtUp(t, within)

	offsets := kadm.Offsets{}
	moved := false
	for _, f := range m.Files {
		for field, text := range f.Begin {
			p, err := ledger.ParsePartition(field)
			must(t, err)
			at, err := ledger.Parse(text)
			must(t, err)
			if was, ok := l.before[p.Number]; !ok || at.From < was {
				l.before[p.Number] = at.From
			}
		}
	}
	for p, at := range l.before {
		moved = moved || at > 0
		offsets.Add(kadm.Offset{Topic: place.Topic, Partition: int32(p), At: at})
	}
	if !moved {
		t.Fatal("the snapshot begins with the log")
	}
	deleted, err := place.Admin().DeleteRecords(t.Context(), offsets)
	must(t, err)
	must(t, deleted.Error())
	return l
}

// events publishes some every few milliseconds, until it is stopped, or the test ends. There is an end to
// them, however long whatever goes on beside takes on a busy machine.
func (l *lost) events(t *testing.T, seed uint64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for i := range uint64(200) {
			if err := l.PublishAll(context.WithoutCancel(ctx), earned(seed+i, 60, 4000, 3)...); err != nil {
				t.Error(err)
				return
			}
			if retry.Sleep(ctx, 15*time.Millisecond) != nil {
				return
			}
		}
	})
	stop = func() { cancel(); publishing.Wait() }
	t.Cleanup(stop)
	return stop
}

// complete holds that no window is shown as incomplete: every partition counts from its beginning.
func (l *lost) complete(t *testing.T) {
	t.Helper()
	origins := l.Hash(t, "origin")
	for field, origin := range origins {
		if !strings.HasSuffix(origin, " 0") {
			t.Errorf("windows that are complete are shown as incomplete: %s is in from %s", field, origin)
		}
	}
	if len(origins) == 0 {
		t.Error("there are no origins")
	}
}

// flush loses all that Redis has.
func (l *lost) flush(t *testing.T) {
	t.Helper()
	must(t, l.RedisClient().FlushAll(t.Context()).Err())
}

type restoreReport struct {
	Restored   bool     `json:"restored"`
	Refused    []string `json:"refused"`
	Snapshot   string   `json:"snapshot"`
	Standings  int64    `json:"standings"`
	ToRead     int64    `json:"to_read"`
	Partitions []struct {
		Partition string `json:"partition"`
		From      int64  `json:"from"`
		LogStart  int64  `json:"log_start"`
	} `json:"partitions"`
}

// startRestore starts one.
func (l *lost) startRestore(t *testing.T, args ...string) *rebuilding {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"restore", "--json"}, args...)...)
	cmd.Env = append(l.Environment(l.Settings), "STANDINGS_SNAPSHOTS_URL=dir:"+l.directory)
	r := &rebuilding{t: t}
	cmd.Stdout, cmd.Stderr = &r.out, &r.err
	cmd.WaitDelay = 5 * time.Second
	process, err := child.Start(cmd, "")
	must(t, err)
	r.process = process
	t.Cleanup(process.Kill)
	return r
}

// restored waits for its end, which has to be in order.
func (r *rebuilding) restored() *restoreReport {
	r.t.Helper()
	if code := r.ended(); code != 0 {
		r.t.Fatalf("the restore ended with code %d:\n%s%s", code, r.err.Text(), r.out.String())
	}
	var said restoreReport
	if err := json.Unmarshal(r.out.Bytes(), &said); err != nil {
		r.t.Fatalf("%v in %q", err, r.out.String())
	}
	return &said
}

// Redis is lost while consumers run, and the log goes back no further than the snapshot: the year comes
// back, to the event, and consumers go on from there by themselves.
func TestARestoreBringsBackWhatTheLogNoLongerHas(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{"one shard": {}, "three shards": {"redis.shards": "3"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := snapshotInTraffic(t, settings)
			l.flush(t)
			l.Consumers()[0].Log.AwaitHalt(t, within, "gap")

			dry := l.startRestore(t, "--dry-run").restored()
			if dry.Restored || dry.ToRead == 0 || dry.Standings == 0 {
				t.Errorf("a dry run says %+v", dry)
			}
			for _, p := range dry.Partitions {
				at, err := ledger.ParsePartition(p.Partition)
				must(t, err)
				if p.From != l.before[at.Number] || p.LogStart != p.From {
					t.Errorf("it is to be read from %d, of a log from %d; want %d", p.From, p.LogStart, l.before[at.Number])
				}
			}
			if n := len(beside(t, l.Place)); n > 0 {
				t.Errorf("a dry run left %d keys", n)
			}
			if said := l.startRestore(t, "--yes").restored(); !said.Restored || said.Snapshot != dry.Snapshot {
				t.Errorf("it says %+v", said)
			}
			l.Publish(t, earned(600, 1000, 4000, 3)...)
			finish(t, l.Place)
			l.complete(t)
		})
	}
}

// Where Redis is built anew it may get another number of shards.
func TestARestoreGoesToTheShardsThatThereAreNow(t *testing.T) {
	t.Parallel()
	l := snapshotInTraffic(t, map[string]string{"redis.shards": "3"})
	l.TerminateAll(t)
	l.flush(t)
	l.Settings["redis.shards"] = "2"
	l.Start(t).Log.AwaitHalt(t, within, "gap")
	if said := l.startRestore(t, "--yes").restored(); !said.Restored {
		t.Errorf("it says %+v", said)
	}
	l.Publish(t, earned(900, 1000, 4000, 3)...)
	finish(t, l.Place)
	l.complete(t)
}

// Consumers that go on over a gap have begun by themselves. The restore takes the place of what they have,
// while events come.
func TestARestoreTakesThePlaceOfBoardsThatLackEvents(t *testing.T) {
	t.Parallel()
	l := snapshotInTraffic(t, map[string]string{"on_gap": "continue"})
	l.flush(t)
	l.AwaitCaughtUp(t, within)
	if origins := l.Hash(t, "origin"); strings.HasSuffix(origins[l.Topic+"/0"], " 0") {
		t.Errorf("what lacks events isn't shown as incomplete: %v", origins)
	}
	stop := l.events(t, 700)
	said := l.startRestore(t, "--yes").restored()
	stop()
	if !said.Restored {
		t.Errorf("it says %+v", said)
	}
	finish(t, l.Place)
	l.complete(t)
}

// Killed at any moment, a restore leaves keys that expire, and the next one brings all back.
func TestARestoreThatIsKilledAnywhereIsStartedAgain(t *testing.T) {
	t.Parallel()
	l := snapshotInTraffic(t, map[string]string{"redis.shards": "2"})
	l.flush(t)
	began := time.Now()
	l.startRestore(t, "--yes").restored()
	whole := time.Since(began)
	l.AwaitCaughtUp(t, within)
	l.CheckBoards(t)
	leftovers := 0
	for range 12 {
		l.flush(t)
		r := l.startRestore(t, "--yes")
		select {
		case <-time.After(rand.N(whole)):
			r.process.Kill()
		case <-r.process.Done():
		}
		if code := r.ended(); code != 0 && len(beside(t, l.Place)) > 0 {
			leftovers++
		}
		lapse(t, l.Place)
		if len(l.Hash(t, "ledger")) == 0 { // else it was through, of this shard at least
			l.startRestore(t, "--yes").restored()
		} else {
			l.flush(t)
			l.startRestore(t, "--yes").restored()
		}
		l.AwaitCaughtUp(t, within)
		l.CheckBoards(t)
	}
	t.Logf("%d of 12 were killed with something left", leftovers)
	l.Publish(t, earned(800, 500, 4000, 3)...)
	finish(t, l.Place)
}

// What can't be exact is refused, with what is missing.
func TestARestoreOfWhatTheLogLacksIsRefused(t *testing.T) {
	t.Parallel()
	l := snapshotInTraffic(t, nil)
	l.TerminateAll(t)
	l.flush(t)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: l.Topic, Partition: 1, At: l.before[1] + 1})
	deleted, err := l.Admin().DeleteRecords(t.Context(), offsets)
	must(t, err)
	must(t, deleted.Error())
	l.startRestore(t, "--yes").refused("the log of " + l.Topic + "/1 begins at offset")
	l.startRestore(t, "--dry-run").refused("where the snapshot begins")
	if n := len(l.Hash(t, "ledger")) + len(beside(t, l.Place)); n > 0 {
		t.Errorf("%d keys are there", n)
	}
}
