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

// shuffled says that goroutines run in any order.
var shuffled bool

// fewer is an eighth of a number with the race detector, which takes ten times as long for each world, and a sixteenth
// with Go alone, whose users wait for everything to be built. A run with real servers lives all of them.
func fewer(n int) int {
	switch {
	case shuffled:
		return max(1, n/8)
	case goAlone:
		return max(1, n/16)
	}
	return n
}

// goAlone reports make test with Go alone: other packages run at the same time.
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
	runtime.GOMAXPROCS(1) // who runs when is no chance then: see the package's comment
	os.Exit(m.Run())
}

// quiet takes what the client of Redis prints by itself: processes tell of their errors.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(context.Context, string, ...any) {}

// live is the world of a plan, from its beginning to its end.
func live(t *testing.T, p *plan) *world {
	t.Helper()
	if *flagInto != "" { // see child: nobody can recover from a panic in the world's goroutines
		if err := os.WriteFile(*flagInto+".seed", fmt.Append(nil, p.seed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The client of Redis keeps timers in a pool, and a timer of one bubble can't be used in another. Two collections
	// empty the pools.
	runtime.GC()
	runtime.GC()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, uint64(p.seed)) // a rebuild's id
		w = newWorld(p)
		w.run()
	})
	return w
}

// shrinkRuns is how often a world that fails is lived again, at most.
const shrinkRuns = 400

// explain tells of a failing world in as few words as are found.
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

// failedOnce are the seeds of worlds that failed before the product or the simulation was fixed, each with what it found.
var failedOnce = []int64{
	1795887452016, 1795887453225, // an event that was in no window named its member if another of the member's events was in the piece
	10591980471319, 10591980473519, // clocks moved on while a start was resolved: it was held against the later clock
	10591980473769,                              // Redis evicted a final window that a rebuild had found whole and kept
	3994913938915,                               // dead letters that a takeover had gathered left it no memory for the members
	1795887451367, 1795887447118, 2895399076280, // a takeover lost its turn as the first fetch after a halving failed, and halved again, for ever
	4398046512326,  // a topic began while a rebuild by another configuration was under way
	10592004661511, // Redis's clock went back and on again while a rebuild was under way, and its listing expired before its ledger
	19388097683438, // Redis evicted the borders of windows, and a process with other time zone rules settled them again
	1795918469089,  // a rebuild that was to pause no consumer found a window to keep as it took over, and tried that for ever
	1795918467767,  // a plan of a start was committed over the position of an idle partition, and stayed
	36980304832753, // an election lost records from before a partition's origin: a rebuild never counted those in their place
	10592025768271, // Redis evicted the schema while every partition was idle: the world waited for seals, which are refused without it
	1795894978276,  // a start failed after it had written the schema: boards without a ledger were shown as whole
	3994956002587,  // a piece was applied after its sender gave up the call, and its generation ended before Redis answered the second call
	72164676923181, // an event was late for all periods that its board had, and in time for one that was added afterwards
	72164676933761, // the same
	72164676936241, // the same
	72164676927991, // the same, with an event that was early
	19388118799188, // late events were counted with every attempt to bring a full shard along that had nothing of them
	36980321502713, // Redis evicted the names, and the rebuild that was to add them crashed after its swap
	19388129498438, // all masters were wiped, a border was settled again, and one master went back to where it was otherwise
	72164676928761, // a process without the added period was to know its windows when it filled a lost Redis again
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

// liveForParent lives the worlds that a child is asked for; who asked tells of them.
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

// spread lives n worlds in as many processes as there are processors. A process lives at most a thousand:
// its memory grows.
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

// child runs this test in a process of its own, and reads its report. An error names the
// world in which it ended.
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

// A seed is worth something as long as its world comes out the same. What it rests on: one
// processor, goroutines that run in the order in which they became ready, no two timers
// that end at the same moment, and selects of the product in which one case is ready at a
// time. What nobody can keep away is a machine that takes the processor away for 10 ms:
// the runtime then puts another goroutine first. So a world that differs is lived again.
func TestAWorldIsTheSameEveryTime(t *testing.T) {
	const (
		tries = 3
		most  = 5 // that a busy machine may take the processor from
	)
	if goAlone {
		testenv.NotRun(t, "other packages use the processors meanwhile")
	}
	differed, seeds := 0, int64(100)
	if testing.Short() {
		seeds = 30
	}
	if shuffled {
		seeds = 5 // nothing can be compared
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
			first = again // it may be the first that was disturbed
		}
	}
	t.Logf("%d of the repetitions differed (shuffled by the race detector: %v)", differed, shuffled)
	if differed > most && !shuffled {
		t.Errorf("%d of the repetitions differed", differed)
	}
}

// difference is where two traces part.
func difference(a, b *world) string {
	x, y := strings.Split(string(a.trace), "\n"), strings.Split(string(b.trace), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d of its trace:\n %s\n %s", i+1, x[i], y[i])
		}
	}
	return "one is longer"
}
