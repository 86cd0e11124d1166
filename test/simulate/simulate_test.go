//go:debug randautoseed=0
//go:debug randseednop=0

package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

var (
	flagN    = flag.Int("n", 1000, "how many worlds to live")
	flagFrom = flag.Int64("from", 1, "the first world's number")
	flagSeed = flag.Int64("seed", 0, "live the world of this seed alone, and tell its story")
	flagFind = flag.Bool("find", false, "look for a seed's world that notices a broken variant, where that of the table doesn't")
	flagInto = flag.String("into", "", "write the report into this file")
)

// shuffled is true if goroutines run in any order.
var shuffled bool

// fewer reduces a number of worlds: to an eighth with the race detector, which takes ten times as long
// for each world, and to a sixteenth with Go alone, where users wait for all packages. A run with real
// servers runs all worlds.
func fewer(n int) int {
	switch {
	case shuffled:
		return max(1, n/8)
	case goAlone:
		return max(1, n/16)
	}
	return n
}

// goAlone is true during "make test" with Go alone, when other packages run at the same time.
var goAlone bool

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "n" })
	goAlone = testing.Short() && !given && os.Getenv("STANDINGS_TEST_KAFKA_WAY") == "embedded"
	if !given {
		*flagN = fewer(*flagN)
	}
	redis.SetLogger(quiet{})
	runtime.GOMAXPROCS(1) // makes scheduling deterministic: see the package's comment
	os.Exit(m.Run())
}

// quiet drops what the Redis client itself logs; the processes report their own errors.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(context.Context, string, ...any) {}

// live runs the world of a plan from its beginning to its end.
func live(t *testing.T, p *plan) *world {
	t.Helper()
	if *flagInto != "" { // a panic in the world's goroutines can't be recovered: see child
		if err := os.WriteFile(*flagInto+".seed", fmt.Append(nil, p.seed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The Redis client keeps timers in a pool, and a timer of one synctest bubble can't be used in
	// another. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, uint64(p.seed)) // for the id of a rebuild
		w = newWorld(p)
		w.run()
	})
	return w
}

// shrinkRuns is the maximum number of times that a failing world is run again to shrink its plan.
const shrinkRuns = 400

// explain describes a failing world by the smallest failing plan that it finds.
func explain(t *testing.T, seed int64) string {
	t.Helper()
	runs := shrinkRuns
	if seed%crowdEvery == 0 {
		runs /= 20
	}
	p, w := shrink(draw(seed), func(p *plan) *world { return live(t, p) }, runs)
	records := 0
	for _, s := range p.sendings {
		records += len(s.records)
	}
	return fmt.Sprintf("seed %d, with %d faults and %d records left of it (make simulate SEED=%d shows all):\n  %s", seed, len(p.events), records, seed, strings.Join(w.story, "\n  "))
}

func TestWhateverHappensEveryWorldEndsAsTheOracleSays(t *testing.T) {
	if *flagSeed != 0 {
		w := live(t, draw(*flagSeed))
		t.Logf("seed %d:\n  %s", *flagSeed, strings.Join(w.story, "\n  "))
		if w.failed != "" {
			t.Errorf("%s", explain(t, *flagSeed))
		}
		return
	}
	if *flagInto != "" {
		liveForParent(t)
		return
	}
	t.Logf("%d worlds from number %d on. The same again: make simulate N=%d FROM=%d; one of them: make simulate SEED=…", *flagN, *flagFrom, *flagN, *flagFrom)
	began := time.Now()
	r := spread(t, *flagFrom, *flagN)
	t.Logf("%v\n%v, %.1f ms a world", r, time.Since(began), time.Since(began).Seconds()*1000/float64(r.Worlds))
	explained := 0
	for seed, what := range r.Failed {
		t.Errorf("seed %d: %s", seed, what)
		if explained++; explained <= 3 {
			t.Error(explain(t, seed))
		}
	}
	if missing := r.missing(); len(missing) > 0 {
		t.Errorf("in %d worlds there never was: %s", r.Worlds, strings.Join(missing, "; "))
	}
}

// failedOnce holds the seeds of worlds that failed before the product or the simulation was fixed, each
// with its fault.
var failedOnce = []int64{
	1795887452016, 1795887453225, // an event in no live window stored its name if its piece had another event of the member
	10591980471319, 10591980473519, // clocks advanced while a start was resolved, and a check used the later clock
	10591980473769,                              // Redis evicted a final window that a rebuild had found complete and kept
	3994913938915,                               // dead letters gathered by a takeover left it no memory for the members
	1795887451367, 1795887447118, 2895399076280, // after a failed fetch, a takeover lost its turn and halved again, endlessly
	4398046512326,  // a topic began during a rebuild by another configuration
	10592004661511, // Redis's clock went back and forward during a rebuild, whose listing expired before its ledger
	19388097683438, // Redis evicted the borders of windows, and a process with other time zone rules set them again
	1795918469089,  // at its takeover, a rebuild that must pause no consumer found a window to keep, and retried endlessly
	1795918467767,  // a planned start was committed over the position of an idle partition, and stayed
	36980304832753, // an election lost records before a partition's origin, and a rebuild never counted their replacements
	10592025768271, // Redis evicted the schema, which seals need, while all partitions were idle
	1795894978276,  // a start failed after writing the schema, and boards without a ledger were shown as complete
	3994956002587,  // a piece was applied after its sender gave up; its generation ended before Redis answered the retry
	72164676923181, // an event was too late for all periods of its board, but not for one that was added afterwards
	72164676933761, // the same
	72164676936241, // the same
	72164676927991, // the same, with an event that was too early
	19388118799188, // each attempt to catch a full shard up counted late events again that belonged to other shards
	36980321502713, // Redis evicted the names, and the rebuild that was to add them crashed after its swap
	19388129498438, // all masters were wiped, a border was settled again, and one master went back to an earlier value
	36980315567543, // a ban died before it had set the expiry of the hidden set, and never set it
	1795943480130,  // a shard was lost and begun again while the leader of a partition did not know the log's end
	2895472824192,  // the first record of a sweep was of no member that a takeover with little memory read, and every second fetch failed
	2895462056262,  // Redis evicted the ledger before anything counted, and the origin of a start that counts less remained
	72164676928761, // a process without the added period had to know its windows when it refilled a lost Redis
}

func TestWorldsThatFailedOnceAndThoseThatNoticeWhatIsBrokenEndAsTheOracleSays(t *testing.T) {
	seeds := slices.Clone(failedOnce)
	for _, b := range allBroken {
		if !goAlone && b.small == nil && b.seed%crowdEvery != 0 {
			seeds = append(seeds, b.seed)
		}
	}
	slices.Sort(seeds)
	for _, seed := range slices.Compact(seeds) {
		if w := live(t, draw(seed)); w.failed != "" {
			t.Error(explain(t, seed))
		}
	}
}

// liveForParent runs the worlds that the parent process asks for. The parent reports about them.
func liveForParent(t *testing.T) {
	t.Helper()
	r := newReport()
	for i := range *flagN {
		r.add(live(t, draw(seedOf(*flagFrom+int64(i)))))
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*flagInto, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// spread runs n worlds in as many processes as there are processors. A process runs at most 1000 worlds
// because its memory grows.
func spread(t *testing.T, first int64, n int) *report {
	t.Helper()
	each := min(1000, (n+runtime.NumCPU()-1)/runtime.NumCPU())
	var mu sync.Mutex
	all := newReport()
	slots := make(chan struct{}, runtime.NumCPU())
	var running sync.WaitGroup
	for from := 0; from < n; from += each {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r, err := child(t, fmt.Sprintf("-n=%d", min(each, n-from)), fmt.Sprintf("-from=%d", first+int64(from)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			all.merge(r)
		})
	}
	running.Wait()
	return all
}

// child runs this test in its own process and reads that process's report. If the process panics, the
// error names the seed of its last world.
func child(t *testing.T, args ...string) (*report, error) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "report")
	c := exec.CommandContext(t.Context(), os.Args[0], append(args, "-test.run=^"+t.Name()+"$", "-test.timeout=15m", "-into="+into)...)
	out, err := c.CombinedOutput()
	r := newReport()
	if err != nil {
		seed, unread := os.ReadFile(into + ".seed")
		if unread != nil {
			seed = []byte("unknown")
		}
		return r, fmt.Errorf("in the world of seed %s: %w\n%s", seed, err, out)
	}
	text, err := os.ReadFile(into)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, r)
}

func TestAWorldThatPanicsNamesItsSeed(t *testing.T) {
	if *flagInto != "" {
		p := small()
		p.seed = 4242
		p.events = []fault{{at: 3, kind: "no fault at all"}}
		live(t, p)
		return
	}
	_, err := child(t)
	require.ErrorContains(t, err, "in the world of seed 4242: ")
	require.ErrorContains(t, err, "panic: simulate: nothing happens by no fault at all")
}

// A seed is useful only if its world is the same in every run. That depends on four conditions: one
// processor, goroutines that run in the order in which they become ready, no two timers that expire at
// the same moment, and selects in the product with only one ready case at a time. The test can't
// prevent the machine from taking the processor away for 10 ms, after which the runtime runs another
// goroutine first. Therefore a world that differs is run again.
func TestAWorldIsTheSameEveryTime(t *testing.T) {
	const (
		tries = 3
		most  = 5 // differing worlds, because a busy machine may take the processor away
	)
	if goAlone {
		testenv.NotRun(t, "other packages use the processors meanwhile")
	}
	differed, seeds := 0, int64(100)
	if testing.Short() {
		seeds = 30
	}
	if shuffled {
		seeds = 5 // with random order, nothing can be compared
	}
	for seed := int64(1); seed <= seeds; seed++ {
		of := seedOf(seed)
		first := live(t, draw(of))
		for try := 1; ; try++ {
			again := live(t, draw(of))
			if first.failed != "" || again.failed != "" {
				t.Errorf("seed %d: %s %s", seed, first.failed, again.failed)
			}
			if shuffled || bytes.Equal(first.trace, again.trace) {
				break
			}
			differed++
			t.Logf("seed %d differs: %s", seed, difference(first, again))
			if try == tries {
				t.Errorf("seed %d differs %d times: %s", seed, tries, difference(first, again))
				break
			}
			first = again // the first run may be the disturbed one
		}
	}
	t.Logf("%d of the repetitions differed (shuffled by the race detector: %v)", differed, shuffled)
	if differed > most && !shuffled {
		t.Errorf("%d of the repetitions differed", differed)
	}
}

// difference describes the first line in which two traces differ.
func difference(a, b *world) string {
	x, y := strings.Split(string(a.trace), "\n"), strings.Split(string(b.trace), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d of its trace:\n %s\n %s", i+1, x[i], y[i])
		}
	}
	return "one is longer"
}
