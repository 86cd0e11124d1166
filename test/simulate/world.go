// Package simulate runs the consumer in worlds of one seed each: the real worker, fold,
// sweep, apply and start code, the real store and its scripts, between a simulated log,
// group, Redis and clock.
//
//	plan (seed) ─▶ world ──▶ Consumer, Consumer, … (the product's own)
//	                 ▲           │ every call to Kafka or Redis parks
//	                 └─ driver ◀─┘ carries it out, late, never, or not well; crashes
//	                               who asked; takes Redis back; moves the clock
//
// A world lives in a bubble of testing/synctest: its time is virtual, and the driver
// acts only while everything else waits for it. So a seed's world is the same every
// time, on one processor (see Determinism in the tests for what that rests on). After
// its faults everything is let through, and standings, ledger, dead letters and
// accounting have to be what the oracle says, which shares no code with the product.
//
// What goes wrong is a list of events, each with the step from which it is due. So a
// failing world can be told in few words: events and records are left out as long as it
// still fails.
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
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/oracle"
)

// rewrite is what stands in the place of a script: only a test that breaks one sets it.
var rewrite func(source string) string

const callTimeout = 3 * time.Second

// world is one simulated run.
type world struct {
	plan  *plan
	setup *setup

	mu       sync.Mutex
	came     []*call // not looked at yet
	numbered int
	stirred  chan struct{}

	// The driver's.
	calls  []*call
	late   []delayed // writes that are carried out later
	events []fault
	step   int
	passed int
	began  time.Time
	ending bool // faults have stopped

	processes []*process
	lasted    time.Duration // until all was through
	readers   []*reading
	seen      map[string]int // by readers; under telling
	rebuilds  []*rebuilding  // and errands
	errands   int            // of them
	topics    []string       // that processes to come are configured with
	book      int            // the configuration that they go by
	adds      bool           // they have the period that is added
	slept     time.Duration  // that went by at once: see night
	verdicts  map[verdictOf]*verdict
	windows   map[string][]*ruledWindow // by period
	kafka     brokers
	group     coordinator
	shards    []*shard
	bans      bansOf
	masters   []*master
	skew      atomic.Int64 // of Redis's clock, ns
	final     finality
	refusals  atomic.Int64 // that it met
	calendar  periods.Calendar

	sweeps     map[sweeping]*process // who applied last
	cuts       map[wanted]cut
	ends       []int64                       // of the logs, as the world begins
	resolved   map[string]int64              // Redis's clock, ms, as an origin was first seen, by partition and text
	rebuilt    bool                          // by the operator
	elected    *partition                    // that an election has lost records of
	belated    bool                          // the call that is carried out was sent long ago
	leapt      bool                          // Redis's clock has
	jumped     []jump                        // of Redis's clock
	peak       time.Time                     // the latest time that it had shown before the last one
	roomless   bool                          // as many windows were listed as new boards may open
	dropped    map[string]bool               // windows, with their boards
	refusedIn  map[oracle.At]map[string]bool // see refusedByWindow
	dropping   func(string) bool             // boards of which a drop died midway
	truncated  atomic.Bool                   // a partition was halted since its log seemed to end too early
	groundless atomic.Pointer[string]        // a halt that nothing here ever asks for
	unknown    bool                          // somebody may never have learned an outcome: accounting differs
	unheard    map[unheard]bool              // pieces that were applied and of which the sender knows no outcome

	held    string     // what was held last
	telling sync.Mutex // what follows
	story   []string
	trace   []byte
	counts  map[string]int
	failed  string
}

// process is one consumer.
type process struct {
	w *world
	size
	topics   []string          // that it is configured with
	book     int               // the configuration's number
	has      bool              // the added period
	lacks    atomic.Bool       // it, and has refused to start
	shadow   map[int][]counted // of a rebuild: by which configurations it has counted records
	id       int
	consumer *ingest.Consumer
	stats    *ingest.Stats
	keeping
	clients []redis.UniversalClient // one a master
	member  *member
	ending  // of its context
	started time.Time
	errand  string            // what it is here for, where that is neither to consume, to read nor to rebuild
	match   func(string) bool // the boards that it drops
	did     int64             // how much of it
	many    int               // commands, of those that are sent by the hundred
	struck  bool              // by a fault
	done    chan struct{}
	err     error
	dead    bool
	cut     bool               // off from everybody
	deaf    bool               // to the group
	stopped bool               // told to
	swept   map[sweeping]int64 // sweeps that it is in the midst of: their first offsets
	// lookedUp is when it last asked which offsets are committed.
	lookedUp time.Time
}

func (p *process) name() string { return fmt.Sprint(p.id) }

// now is Redis's clock.
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

// newWorld makes the world of a plan. It has to be called in its bubble.
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
	p := &process{w: w, size: s, topics: w.topics, book: w.book, has: has, swept: map[sweeping]int64{}, id: len(w.processes) + 1, stats: new(ingest.Stats), done: make(chan struct{})}
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
		Brokers: []string{"192.0.2.1:9092"}, Transport: &transport{w, p},
		Dialer:  &kafka.Dialer{},
		Join:    p.join,
		Refusal: func(context.Context) error { return nil },
		Topics:  p.topics, Group: "group", Owner: p.name(),
		FetchBytes: setup.FetchBytes, FetchWait: time.Second,
		SessionTimeout: sessionTimeout, Heartbeat: time.Second, Timeout: callTimeout,
		CommitInterval: 500 * time.Millisecond, ShutdownTime: 10 * time.Second,
		Start: starts.Where{From: setup.Start, Time: time.UnixMilli(setup.StartTime)}, OnGap: onGap,
		Rules: p.windows(p.has), Retention: kept,
		Events:     event.Rules{MaxEventBytes: maxEventBytes, MaxPoints: setup.MaxPoints, MaxFuture: maxFuture.Milliseconds()},
		Duplicates: setup.Duplicates,
		FoldMemory: s.foldMemory, PieceTime: s.pieceTime,
		Standings: p.standings(),
		Log:       zap.New(&logCore{p: p}), Stats: p.stats,
	}
	p.names(&c)
	p.rules(&c)
	p.addsRules(&c)
	return c
}

// windows are those of a configuration that has the added period, or not.
func (p *process) windows(has bool) fold.Rules {
	all := fold.Rules{Boards: p.w.setup.boardsOf(has)}
	for _, name := range p.w.setup.periodsOf(has) {
		all.Periods = append(all.Periods, fold.Period{Rule: p.rule(name), Lateness: latenessOf(name).Milliseconds()})
	}
	return all
}

// alive are the processes that neither crashed nor were stopped.
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

// notef adds to the trace, which holds every step.
func (w *world) notef(format string, args ...any) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.trace = fmt.Appendf(w.trace, "%d ", time.Since(w.began))
	w.trace = fmt.Appendf(w.trace, format+"\n", args...)
}

// failf ends the world.
func (w *world) failf(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.failed)
	}
}

// logCore takes what a process logs into the story: what it says is what an operator
// would read.
type logCore struct {
	p      *process
	fields []zapcore.Field
}

// Enabled is true from info on.
func (*logCore) Enabled(l zapcore.Level) bool { return l >= zapcore.InfoLevel }

// With adds fields.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{c.p, append(slices.Clip(c.fields), fields...)}
}

// Check takes all.
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
	case health.HaltKafka, health.HaltFormat, health.HaltTooLarge, health.HaltRules: // the log is whole, and so are answers and texts
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
