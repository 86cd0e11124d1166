// Package chaos makes the built consumer fail on a real Kafka and a real Redis in every way that operators
// know, randomly by a seed, under live traffic:
//
//	make chaos DURATION=30m SEED=7
//
// Each mode is a kind of Redis (store_test.go). A round has one fault or two at once. Then everything that
// the log held at the fault's end must count, and the time for that is measured. At the end, faults and
// publishing stop, and the standings are compared with the oracle, to the last bit of a score. There must
// be no difference: every committed event counts once, and nothing else does. A run in which little
// happened fails, too (report_test.go).
//
// The seed reproduces the plan: the order and combination of the faults and their durations, except for
// rebuilds that wait for another's lock. It does not reproduce the exact moments, nor which processes are
// affected.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "how long things go wrong, over all modes")
	seed     = flag.Uint64("seed", 1, "what chooses the faults and the events")
	modes    = flag.String("modes", plain, "which Redis: "+strings.Join(allModes, ", "))
	only     = flag.String("faults", "", "a regular expression: faults of these kinds alone")
)

// silent keeps go-redis from writing a line for every failed dial.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(silent{})
	harness.Main(m)
}

func TestWhateverGoesWrongTheStandingsAreTheOracles(t *testing.T) {
	all, err := chosen(*modes, *only)
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{
		Seed: *seed, Seconds: duration.Seconds(),
		Machine: fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
	}
	fmt.Printf("chaos: seed %d, %v over %s\n", *seed, *duration, *modes)
	for _, mode := range all {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode, *seed)
			report.Kafka, report.Redis = w.kafka.String(), w.store.nodes[0].server.String()
			m := ModeReport{Mode: mode}
			w.run(&m, *duration/time.Duration(len(all)))
			w.judge(&m)
			for _, d := range slices.Concat(m.Wrong, m.Differences) {
				t.Error(d)
			}
			report.Modes = append(report.Modes, m)
		})
	}
	if len(report.Modes) == 0 && !t.Failed() { // this machine has no servers: all modes are reported as skipped
		return
	}
	report.Lacks = report.hollow()
	for _, l := range report.Lacks {
		t.Error(l)
	}
	report.write(os.Stdout)
	if n := report.wrong(); n > 0 {
		again := ""
		if *only != "" {
			again = fmt.Sprintf(" FAULTS='%s'", *only)
		}
		fmt.Printf("%d failures. Again: make chaos DURATION=%v SEED=%d MODES=%s%s\n", n, *duration, *seed, *modes, again)
	}
}

// run executes faults for a while.
func (w *world) run(m *ModeReport, d time.Duration) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(w.mode))
	plan := rand.New(rand.NewPCG(*seed, hash.Sum64()))
	if _, err := w.recovered(); err != nil {
		m.Wrong = append(m.Wrong, "before anything went wrong: "+err.Error())
		return
	}
	w.disturbed.Store(false)
	w.began = time.Now()
	var deck deck
	for round := 1; time.Since(w.began) < d; round++ {
		if !w.round(m, plan, round, deck.next(w, plan)) || w.t.Failed() {
			return
		}
	}
}

// deck holds the kinds of faults that come next. Each occurs once before any occurs again. Exception: while
// a killed rebuild's lock would make rebuilds fail, their faults are postponed.
type deck []fault

func (d *deck) next(w *world, plan *rand.Rand) fault {
	for deadline := time.Now().Add(outlives); ; {
		locked := time.Now().Before(deadline) && w.lock(w.t.Context())
		i := slices.IndexFunc(*d, func(f fault) bool { return !locked || f.group != ofRebuilds })
		if i >= 0 {
			next := (*d)[i]
			*d = slices.Delete(*d, i, i+1)
			return next
		}
		more := slices.DeleteFunc(of(w.mode, *only), func(f fault) bool {
			return slices.ContainsFunc(*d, func(g fault) bool { return f.kind == g.kind })
		})
		if len(more) == 0 { // only rebuilds were selected
			time.Sleep(100 * time.Millisecond)
			continue
		}
		plan.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		*d = append(*d, more...)
	}
}

// round executes one fault, or two, and waits until everything in the log by then counts. It reports
// whether the run can continue.
func (w *world) round(m *ModeReport, plan *rand.Rand, number int, first fault) bool {
	time.Sleep(between(plan, 200*time.Millisecond, 2*time.Second))
	if w.mode == rdb && (len(w.store.dumps) == 0 || plan.IntN(2) == 0) {
		if plan.IntN(2) == 0 { // so that the dump goes back into a sweep
			w.sweeping(w.t.Context())
		}
		w.store.keep(w.t.Context(), w.place)
	}
	together := []fault{first}
	others := of(w.mode, *only)
	if second := others[plan.IntN(len(others))]; plan.IntN(3) == 0 && second.beside(first) &&
		(second.group != ofRebuilds || !w.lock(w.t.Context())) {
		together = append(together, second)
	}
	effects, wrong := make([]func() string, len(together)), make([]error, len(together))
	w.single.Store(len(together) == 1)
	w.disturbed.Store(slices.ContainsFunc(together, func(f fault) bool { return !f.calm }))
	begun := time.Now()
	var on sync.WaitGroup
	for i, f := range together {
		r := rand.New(rand.NewPCG(plan.Uint64(), 0))
		effects[i] = nothing
		on.Go(func() {
			if i > 0 {
				time.Sleep(between(r, 0, 2*time.Second))
			}
			effects[i], wrong[i] = f.do(w, r)
		})
	}
	on.Wait()
	lasted := time.Since(begun)
	took, err := w.recovered()
	w.disturbed.Store(false)
	for i, f := range together {
		effect := effects[i]()
		if wrong[i] != nil {
			m.Wrong = append(m.Wrong, fmt.Sprintf("%s: %v", f.kind, wrong[i]))
		}
		entry := m.add(f.kind, effect)
		if i == 0 && err == nil && effect != "" {
			entry.Recovery.add(took)
		}
		w.tell(number, i, f.kind, effect)
	}
	fmt.Printf("%s on for %s, recovered in %s\n", w.margin(number), seconds(lasted), seconds(took))
	if err != nil {
		m.Wrong = append(m.Wrong, fmt.Sprintf("after %s: %v", first.kind, err))
	}
	return err == nil
}

// tell shows progress.
func (w *world) tell(round, i int, kind, effect string) {
	if effect == "" {
		effect = "no effect"
	}
	begin := fmt.Sprintf("%s %3d ", w.mode, round)
	if i > 0 {
		begin = w.margin(round)
	}
	fmt.Printf("%s %4.0f s  %s: %s\n", begin, time.Since(w.began).Seconds(), kind, effect)
}

// margin returns blanks as wide as the start of a round's line.
func (w *world) margin(round int) string {
	return strings.Repeat(" ", len(fmt.Sprintf("%s %3d ", w.mode, round)))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
