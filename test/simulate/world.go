// Package simulate runs the consumer in simulated worlds, one per seed. The worker, fold, sweep, apply and
// start code, the store and its scripts are the product's own. The log, group, Redis and clock are
// simulated.
//
//	plan (seed) ─▶ world ──▶ Consumer, Consumer, … (the product's own)
//	                 ▲           │ every call to Kafka or Redis waits
//	                 └─ driver ◀─┘ executes it, delays it, drops it or fails it; crashes
//	                               the caller; reverts Redis; moves the clock
//
// A world runs in a bubble of testing/synctest: its time is virtual, and the driver acts only while
// everything else waits. So the world of a seed is the same every time, on one processor
// (TestAWorldIsTheSameEveryTime lists the conditions). After the faults, all calls are executed, and
// standings, ledger, dead letters and accounting must be equal to the result of the oracle, which shares no
// code with the product.
//
// The faults are a list of events, each with the step from which it is due. So a failing world can be
// described briefly: events and records are removed as long as it still fails.
package simulate

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/oracle"
)

// rewrite replaces a script's source. Only tests that break a script set it.
var rewrite func(source string) string

const callTimeout = 3 * time.Second

// world is one simulated run.
type world struct {
	plan  *plan
	setup *setup

	mu       sync.Mutex
	came     []*call // not admitted yet
	numbered int
	stirred  chan struct{}

	// Only the driver uses the following fields.
	calls  []*call
	late   []delayed // writes that are executed later
	events []fault
	step   int
	passed int
	began  time.Time
	ending bool // the faults have stopped

	processes []*process
	lasted    time.Duration // time until everything was counted
	readers   []*reading
	seen      map[string]int // by readers; telling guards it
	rebuilds  []*rebuilding  // including processes for one task
	errands   int            // number of those processes
	topics    []string       // configured for processes that start later
	book      int            // the configuration of those processes
	adds      bool           // whether those processes have the added period
	slept     time.Duration  // time skipped at once: see night
	verdicts  map[verdictOf]*verdict
	windows   map[string][]*ruledWindow // by period
	kafka     brokers
	group     coordinator
	shards    []*shard
	bans      bansOf
	masters   []*master
	skew      atomic.Int64 // of Redis's clock, ns
	final     finality
	refusals  atomic.Int64 // refused connections
	calendar  periods.Calendar

	sweeps     map[sweeping]*process // the last process that applied
	cuts       map[wanted]cut
	ends       []int64                       // the logs' ends when the world begins
	resolved   map[string]int64              // Redis's clock, ms, when an origin was first seen, by partition and text
	rebuilt    bool                          // by the operator
	elected    *partition                    // the partition that an election has damaged
	belated    bool                          // the call being executed was sent long ago
	leapt      bool                          // Redis's clock has leapt
	jumped     []jump                        // the jumps of Redis's clock
	peak       time.Time                     // the latest time that it had shown before the last jump
	roomless   bool                          // as many windows were listed as new boards may open
	dropped    map[string]bool               // windows, with their boards
	refusedIn  map[oracle.At]map[string]bool // see refusedByWindow
	dropping   func(string) bool             // matches the boards of which a drop died midway
	truncated  atomic.Bool                   // a partition was halted because its log seemed to end too early
	groundless atomic.Pointer[string]        // a halt that nothing here can cause
	unknown    bool                          // a process may never have learned an outcome, so that its accounting differs
	unheard    map[unheard]bool              // applied pieces whose sender does not know the outcome

	held    string     // the last call that was answered "held"
	telling sync.Mutex // guards the fields below
	story   []string
	trace   []byte
	counts  map[string]int
	failed  string
}

// process is one consumer, rebuild, reader or process for one task.
type process struct {
	w *world
	size
	topics   []string          // configured topics
	book     int               // number of the configuration
	has      bool              // has the added period
	lacks    atomic.Bool       // lacks the added period, and has refused to start
	shadow   map[int][]counted // of a rebuild: the configurations by which it has counted records
	id       int
	consumer *ingest.Consumer
	stats    *counts.Stats
	keeping
	clients []redis.UniversalClient // one per master
	member  *member
	ending  // the end of its context
	started time.Time
	errand  string            // its task, if it neither consumes, reads nor rebuilds
	match   func(string) bool // the boards that it drops
	did     int64             // the size of the task's result
	many    int               // number of commands of the kinds that are sent by the hundred
	struck  bool              // a fault affected it
	done    chan struct{}
	err     error
	dead    bool
	cut     bool               // from all servers
	deaf    bool               // to the group
	stopped bool               // by a request to stop
	swept   map[sweeping]int64 // sweeps in progress: their first offsets
	// lookedUp is when it last requested the committed offsets.
	lookedUp time.Time
}

func (p *process) name() string { return fmt.Sprint(p.id) }

// isDead reports whether the process has crashed.
func (p *process) isDead() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.dead
}

func (w *world) named(name string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p.name() == name {
			return p
		}
	}
	for _, r := range w.rebuilds {
		if r.name() == name {
			return r.process
		}
	}
	for _, r := range w.readers {
		if r.name() == name {
			return r.process
		}
	}
	panic("simulate: nobody is called " + name)
}

// newWorld creates the world of a plan. It must be called inside the world's bubble.
func newWorld(p *plan) *world {
	rand.Seed(p.seed) //nolint:staticcheck // backoff's jitter comes from there
	time.Sleep(p.setup.Ahead)
	w := &world{
		plan: p, setup: &p.setup, stirred: make(chan struct{}, 1), began: time.Now(),
		seen: map[string]int{}, counts: map[string]int{}, sweeps: map[sweeping]*process{}, cuts: map[wanted]cut{},
		kafka: brokers{committed: map[int]int64{}, trails: map[int]string{}, planned: map[int]planned{}, deadLetters: map[string]*deadLetterLog{}}, dropped: map[string]bool{}, unheard: map[unheard]bool{}, resolved: map[string]int64{}, refusedIn: map[oracle.At]map[string]bool{},
	}
	w.skew.Store(-int64(p.setup.Ahead))
	w.events = slices.Clone(p.events)
	var err error
	if w.calendar, err = periods.NewCalendar(p.setup.Zone, p.setup.WeekStart); err != nil {
		panic(err)
	}
	for range p.setup.Partitions {
		w.kafka.add(topics[0])
	}
	for range p.setup.Second {
		w.kafka.add(topics[1])
	}
	w.topics = topics[:p.setup.topics()]
	for _, of := range w.topics {
		w.kafka.deadLetters[event.DeadLetterTopic(of)] = &deadLetterLog{}
	}
	if p.setup.Second > 0 && p.setup.Later != fromTheBeginning {
		w.kafka.absent = topics[1]
	}
	if p.setup.Later == configuredLater {
		w.topics = topics[:1]
	}
	if !p.setup.NoLetters {
		for name, l := range w.kafka.deadLetters {
			l.partitions = w.kafka.size(sourceOf(name))
		}
	}
	for i := range p.first {
		w.send(&p.sendings[i])
	}
	if p.setup.Beheaded > 0 {
		w.behead()
	}
	for _, log := range w.kafka.partitions {
		w.ends = append(w.ends, log.stable())
	}
	w.build()
	if p.setup.Bans {
		w.bans.topic.append(w, nil, nil)
		w.whom()
	}
	return w
}

func (w *world) send(s *sending) {
	if s.partition < len(w.kafka.partitions) && len(s.records) > 0 {
		w.kafka.partitions[s.partition].send(w.timely(s), w.reached())
	}
}

// launch starts a process.
func (w *world) launch(s size) { w.launchAs(s, w.adds) }

// launchAs starts a process, with the added period or without.
func (w *world) launchAs(s size, has bool) {
	p := &process{w: w, size: s, topics: w.topics, book: w.book, has: has, swept: map[sweeping]int64{}, id: len(w.processes) + 1, stats: new(counts.Stats), done: make(chan struct{})}
	p.member = &member{w: w, from: p}
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	p.dial()
	p.ending = newEnding()
	p.started = time.Now()
	p.keeps()
	p.consumer = ingest.New(p.config(s))
	w.tellf("process %d starts, with %d KiB to fold in and pieces of %v", p.id, s.foldMemory>>10, s.pieceTime)
	go func() {
		defer close(p.done)
		p.consumes()
	}()
}

func (p *process) config(s size) ingest.Config {
	w, setup := p.w, p.w.setup
	kept := map[periods.Period]time.Duration{}
	for _, name := range setup.periodsOf(p.has) {
		kept[periods.Period(name)] = retention[name]
	}
	onGap := starts.GapHalts
	if setup.Continue {
		onGap = starts.GapContinues
	}
	c := ingest.Config{
		Kafka: ingest.Kafka{
			Brokers: []string{"192.0.2.1:9092"}, Transport: &transport{w, p},
			Dialer:  &kafka.Dialer{},
			Join:    p.join,
			Refusal: func(context.Context) error { return nil },
			Topics:  p.topics, Group: "group",
			FetchBytes: setup.FetchBytes,
		},
		Timing: ingest.Timing{
			FetchWait:      time.Second,
			SessionTimeout: sessionTimeout, Heartbeat: time.Second, Timeout: callTimeout,
			CommitInterval: 500 * time.Millisecond, ShutdownTime: 10 * time.Second,
			PieceTime: s.pieceTime,
		},
		Starting: ingest.Starting{Start: starts.Where{From: setup.Start, Time: time.UnixMilli(setup.StartTime)}, OnGap: onGap},
		Counting: ingest.Counting{
			Rules: p.windows(p.has), Retention: kept,
			Events:     event.Rules{MaxEventBytes: maxEventBytes, MaxPoints: setup.MaxPoints, MaxFuture: maxFuture.Milliseconds()},
			Duplicates: setup.Duplicates,
		},
		Owner:      p.name(),
		FoldMemory: s.foldMemory,
		Standings:  p.standings(),
		Log:        zap.New(&logCore{p: p}), Stats: p.stats,
	}
	p.names(&c)
	p.rules(&c)
	p.addsRules(&c)
	return c
}

// windows returns the rules for windows of a configuration with the added period, or without.
func (p *process) windows(has bool) fold.Rules {
	all := fold.Rules{Boards: p.w.setup.boardsOf(has)}
	for _, name := range p.w.setup.periodsOf(has) {
		all.Periods = append(all.Periods, fold.Period{Rule: p.rule(name), Lateness: latenessOf(name).Milliseconds()})
	}
	return all
}

// alive returns the processes that neither crashed nor were stopped.
func (w *world) alive() (all []*process) {
	for _, p := range w.processes {
		if !p.dead && !p.stopped {
			all = append(all, p)
		}
	}
	return all
}

// --- the story ------------------------------------------------------------------------

// tellf adds a sentence to the story.
func (w *world) tellf(format string, args ...any) {
	line := fmt.Sprintf("%8.3f s  ", time.Since(w.began).Seconds()) + fmt.Sprintf(format, args...)
	w.telling.Lock()
	w.story = append(w.story, line)
	w.telling.Unlock()
	w.notef("%s", line)
}

// notef adds to the trace, which contains every step.
func (w *world) notef(format string, args ...any) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.trace = fmt.Appendf(w.trace, "%d ", time.Since(w.began))
	w.trace = fmt.Appendf(w.trace, format+"\n", args...)
}

// failf marks the world as failed.
func (w *world) failf(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.failed)
	}
}

// logCore adds a process's log to the story, as an operator would read it.
type logCore struct {
	p      *process
	fields []zapcore.Field
}

// Enabled reports whether a level is logged: info and above.
func (*logCore) Enabled(l zapcore.Level) bool { return l >= zapcore.InfoLevel }

// With returns a core with more fields.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{c.p, append(slices.Clip(c.fields), fields...)}
}

// Check accepts every enabled entry.
func (c *logCore) Check(e zapcore.Entry, into *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return into.AddCore(e, c)
	}
	return into
}

// Write adds a line.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(c.fields, fields) {
		f.AddTo(text)
	}
	about := ""
	for _, name := range []string{"partition", "position", "reason", "what", "offsets", "ledger", "error"} {
		if v, ok := text.Fields[name]; ok {
			about += fmt.Sprintf(" %s=%v", name, v)
		}
	}
	reason := text.Fields["reason"]
	if e.Message != "partition halted" {
		reason = nil
	}
	switch reason {
	case health.HaltTruncated:
		c.p.w.truncated.Store(true)
	case health.HaltSchema:
		c.p.haltsWithout(about)
	case health.HaltKafka, health.HaltFormat, health.HaltTooLarge, health.HaltRules: // the world damages none of these
		if strings.Contains(about, event.DeadLetterTopic("")) && c.p.w.counts[lettersRefused] > 0 {
			break
		}
		said := fmt.Sprintf("process %d halts a partition as %v, and nothing asks for that:%s", c.p.id, reason, about)
		c.p.w.groundless.Store(&said)
	}
	if c.p.consumer == nil || c.p.isDead() {
		return nil
	}
	c.p.w.tellf("    process %d says: %s%s", c.p.id, e.Message, about)
	return nil
}

// Sync does nothing.
func (*logCore) Sync() error { return nil }
