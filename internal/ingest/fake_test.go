package ingest

// This file has the standings of the tests: the ledger's contract as a small in-memory model, with as many
// shards as the tests run with. Tests can make it fail in several ways.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
)

// of is the number of shards of the tests' standings: see TestMain.
var of = ledger.Shards(1)

// total is a member's sum in a window.
type total struct{ points, time int64 }

type board = map[string]map[string]total // listing → member → total

// call is one call of Apply and its result, as the fake recorded it.
type call struct {
	shard   int
	piece   string // expected and next
	width   int
	outcome ledger.Outcome
	err     error
}

// reply is a test hook's instruction for a call of Apply: none, an answer in place of the real one, or an
// error. With executed, the piece is applied before the error.
type reply struct {
	answer   *ledger.Answer
	err      error
	executed bool
}

// fake is the state that the shards share: their behavior, and the calls. Its mutex also guards the shards: the
// calls run one at a time, except for the hooks.
type fake struct {
	mu      sync.Mutex
	shards  []*fakeShard
	held    bool
	zoned   func(w *ledger.Window, end int) string // name of the border at a start or end; nil: no zone
	limit   int64                                  // maximum absolute value of a total; 0: none
	windows int                                    // maximum number of windows in a shard; 0: any
	clock   func() time.Time
	calls   []call
	checks  int // calls of Check
	begins  int

	// apply gets the number of the shard's call. It is called without the lock, may block, and runs for several
	// shards concurrently.
	apply    func(n int, p *ledger.Piece) reply
	position func(shard int) error
	state    func(shard int) error
	begin    func(shard int) error // called without the lock; its error is Begin's, which then writes nothing
}

// fakeShard is the standings of one shard.
type fakeShard struct {
	*fake

	shard   int
	schema  string
	ledger  map[string]string
	origins map[string]string
	boards  board
	rules   map[string]string
	borders map[string]int64    // settled borders of windows
	bounds  map[string][2]int64 // listed bounds of windows
	asked   int                 // number of calls of Apply so far
}

const ourSchema = `{"v":1}`

var (
	errLost    = errors.New("connection reset by the fake")
	errHalting = errors.New("NOPERM by the fake")
)

func newFake() *fake { return newFakeOf(of) }

func newFakeOf(n ledger.Shards) *fake {
	f := &fake{clock: time.Now}
	for i := range int(n) {
		f.shards = append(f.shards, &fakeShard{fake: f, shard: i})
	}
	f.wiped()
	return f
}

// standings returns the standings of all shards.
func (f *fake) standings() (all []shards.Standings) {
	for _, s := range f.shards {
		all = append(all, s)
	}
	return all
}

func (f *fakeShard) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	f.mu.Lock()
	hook, n := f.apply, f.asked
	f.asked++
	f.mu.Unlock()
	var r reply
	if hook != nil {
		r = hook(n, p)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var a ledger.Answer
	switch {
	case ctx.Err() != nil:
		r.err = ctx.Err()
	case r.answer != nil:
		a = *r.answer
	case r.err == nil || r.executed:
		a = f.add(p)
	}
	f.calls = append(f.calls, call{f.shard, p.Expected.String() + " " + p.Next.String(), p.Width(), a.Outcome, r.err})
	if r.err != nil {
		return ledger.Answer{}, 0, fmt.Errorf("apply: %w", r.err)
	}
	return a, time.Duration(p.Width()) * time.Microsecond, nil
}

func (f *fakeShard) Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks++
	if ctx.Err() != nil {
		return ledger.Answer{}, ctx.Err()
	}
	return f.judge(p, true), nil
}

func (f *fakeShard) add(p *ledger.Piece) ledger.Answer { return f.judge(p, false) }

// judge applies a piece, or only checks it.
func (f *fakeShard) judge(p *ledger.Piece, check bool) ledger.Answer {
	field := p.Partition.String()
	switch found := f.ledger[field]; {
	case !check && found == p.Next.String() && found != p.Expected.String():
		return ledger.Answer{Outcome: ledger.Applied}
	case found != p.Expected.String():
		return ledger.Answer{Outcome: ledger.Moved, Found: found}
	case f.schema != ourSchema:
		return ledger.Answer{Outcome: ledger.OtherSchema, Found: f.schema}
	case f.held:
		return ledger.Answer{Outcome: ledger.Held}
	}
	for _, w := range p.Windows {
		is := [2]int64{w.Start, w.End}
		was, listed := f.bounds[w.Listing()]
		if listed && was != is {
			return ledger.Answer{Outcome: ledger.OtherBounds, Window: w.Listing(), Found: "as it is listed", Start: was[0], End: was[1]}
		}
		for i, at := range is {
			if f.zoned == nil || listed {
				continue
			}
			name := f.zoned(&w, i)
			if settled, ok := f.borders[name]; name != "" && (!ok || settled != at) {
				return ledger.Answer{Outcome: ledger.OtherBounds, Window: w.Listing()}
			}
		}
	}
	met, over := map[string]bool{}, map[string]bool{}
	beyond, room := map[string]bool{}, f.windows-len(f.boards)
	for _, w := range p.Windows {
		if f.windows > 0 && f.boards[w.Listing()] == nil {
			room--
			beyond[w.Listing()] = room < 0
		}
	}
	opens := map[string]bool{}
	each := func(do func(listing, member string, m ledger.Member)) {
		for _, g := range p.Groups {
			for _, w := range g.Windows {
				for _, m := range g.Members {
					do(p.Windows[w].Listing(), string(m.ID), m)
				}
			}
		}
	}
	each(func(listing, member string, m ledger.Member) {
		if at := f.of().Of(fold.Hash(m.ID)); at != f.shard {
			panic(fmt.Sprintf("%q of shard %d is sent to shard %d", member, at, f.shard))
		}
		if key := listing + " " + member; met[key] {
			panic("a member and a window meet twice in a piece: " + key)
		}
		met[listing+" "+member] = true
		if s := f.boards[listing][member].points + m.Points; f.limit > 0 && (s > f.limit || s < -f.limit) {
			over[member] = true
		}
		opens[member] = opens[member] || beyond[listing]
	})
	maps.DeleteFunc(opens, func(member string, does bool) bool { return !does || over[member] })
	if len(over)+len(opens) > 0 {
		a := ledger.Answer{Outcome: ledger.Refusing}
		for _, m := range slices.Sorted(maps.Keys(over)) {
			a.Refused = append(a.Refused, ledger.Refusal{Member: m, Reason: ledger.Overflow})
		}
		for _, m := range slices.Sorted(maps.Keys(opens)) {
			a.Refused = append(a.Refused, ledger.Refusal{Member: m, Reason: ledger.WindowLimit})
		}
		return a
	}
	if check {
		return ledger.Answer{Outcome: ledger.Fits}
	}
	for _, w := range p.Windows {
		f.bounds[w.Listing()] = [2]int64{w.Start, w.End}
	}
	each(func(listing, member string, m ledger.Member) {
		if f.boards[listing] == nil {
			f.boards[listing] = map[string]total{}
		}
		t, ok := f.boards[listing][member]
		if !ok {
			t.time = ledger.NoTime
		}
		f.boards[listing][member] = total{t.points + m.Points, max(t.time, m.Time)}
	})
	f.ledger[field] = p.Next.String()
	if p.Note != nil {
		f.rules[p.Note.Rules.String()], f.rules[field] = p.Note.Text, p.Note.Rules.String()
	}
	return ledger.Answer{Outcome: ledger.Applied}
}

func (f *fakeShard) Settle(_ context.Context, borders []ledger.Border, read bool) ([]ledger.Settled, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]ledger.Settled, len(borders))
	for i, b := range borders {
		at, ok := f.borders[b.Name]
		if !ok && !read {
			at, ok = b.At, true
			f.borders[b.Name] = at
		}
		all[i] = ledger.Settled{At: at, OK: ok}
	}
	return all, nil
}

func (f *fakeShard) ForgetRules(_ context.Context, own ledger.Fingerprint) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.rules)
	maps.DeleteFunc(f.rules, func(name, text string) bool {
		needed := name == own.String() || f.ledger[name] != ""
		for field, position := range f.ledger {
			needed = needed || f.rules[field] == name || strings.HasSuffix(position, "#"+name)
		}
		return !needed
	})
	return before - len(f.rules), nil
}

func (f *fakeShard) Position(_ context.Context, partition ledger.Partition) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.position != nil {
		if err := f.position(f.shard); err != nil {
			return "", err
		}
	}
	return f.ledger[partition.String()], nil
}

func (f *fakeShard) State(context.Context) (ledger.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != nil {
		if err := f.state(f.shard); err != nil {
			return ledger.State{}, err
		}
	}
	return ledger.State{
		Schema: f.schema, Now: f.clock(), Ledger: maps.Clone(f.ledger), Origins: maps.Clone(f.origins),
		Windows: len(f.boards), Held: f.held, Rules: maps.Clone(f.rules),
	}, nil
}

func (f *fakeShard) CheckSchema(found string) error {
	if found == "" || found == ourSchema {
		return nil
	}
	return fmt.Errorf("other schema %s: %w", found, errHalting)
}

func (f *fakeShard) Extend(context.Context, *ledger.State, time.Duration) ([]ledger.Added, error) {
	return nil, nil
}

func (f *fakeShard) Begin(_ context.Context, all []ledger.StartPosition) (ledger.StartResult, error) {
	if f.begin != nil {
		if err := f.begin(f.shard); err != nil {
			return 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins++
	switch {
	case f.held:
		return ledger.HeldUp, nil
	case len(f.ledger) == 0 && len(f.boards) > 0:
		return ledger.Orphaned, nil
	}
	for _, b := range all {
		if f.ledger[b.Partition.String()] != b.Found || b.Beside && len(f.ledger) == 0 {
			return ledger.Overtaken, nil
		}
	}
	f.schema = ourSchema
	for _, b := range all {
		field := b.Partition.String()
		f.ledger[field] = b.At.String()
		if b.Origin != nil {
			origin := *b.Origin
			if was, err := ledger.ParseOrigin(f.origins[field]); err == nil {
				origin = ledger.Origin{Offset: max(was.Offset, origin.Offset), Time: max(was.Time, origin.Time), Log: origin.Log}
			}
			f.origins[field] = origin.String()
		}
	}
	return ledger.Began, nil
}

func (f *fakeShard) Report(_ context.Context, lines []ledger.Line) (stored, before []string, err error) {
	stored = make([]string, len(lines))
	return stored, stored, nil
}

func (f *fakeShard) Retract(context.Context, []ledger.Line) error { return nil }

func (f *fakeShard) Classify(err error) ledger.Verdict {
	if errors.Is(err, errHalting) {
		return ledger.Halt
	}
	return ledger.Retry
}

// do runs a function under the fake's lock.
func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) of() ledger.Shards { return ledger.Shards(len(f.shards)) }

func field(partition int) string {
	return ledger.Partition{Topic: topic, Number: partition}.String()
}

// texts returns the ledgers' texts of a field, by shard. The caller holds the lock.
func (f *fake) texts(field string) (all []string) {
	for _, s := range f.shards {
		all = append(all, s.ledger[field])
	}
	return all
}

// at returns the ledgers' text: a single one if the shards are level, else the text of each shard.
func (f *fake) at(partition int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.texts(field(partition))
	if len(slices.Compact(slices.Clone(all))) == 1 {
		return all[0]
	}
	return fmt.Sprintf("%q", all)
}

// positions returns the positions in the ledgers, by shard.
func (f *fake) positions(partition int) (ledger.Positions, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(ledger.Positions, len(f.shards))
	for i, text := range f.texts(field(partition)) {
		var err error
		if all[i], err = ledger.Parse(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stands sets the ledgers to a text. In a sweep, each shard gets a position in the range of its members. The
// caller holds the lock if a worker runs.
func (f *fake) stands(field, text string) {
	for i, s := range f.shards {
		s.schema, s.ledger[field] = ourSchema, text
		if at, err := ledger.Parse(text); err == nil {
			s.ledger[field] = spread(at, f.of())[i].String()
		}
	}
}

// spread returns the positions of several shards that correspond to a position of a single shard.
func spread(at ledger.Position, n ledger.Shards) ledger.Positions {
	all := slices.Repeat(ledger.Positions{at}, int(n))
	for i := range all {
		switch {
		case !at.Sweeping() || i == n.Of(at.Hash):
		case i < n.Of(at.Hash):
			all[i] = ledger.At(at.To)
		default:
			all[i] = ledger.At(at.From)
		}
	}
	return all
}

// written sets the schema of all shards. The caller holds the lock if a worker runs.
func (f *fake) written(schema string) {
	for _, s := range f.shards {
		s.schema = schema
	}
}

// origin returns the text of a partition's origin, which must be the same in every shard. The caller holds the
// lock.
func (f *fake) origin(t require.TestingT, field string) string {
	for _, s := range f.shards[1:] {
		require.Equal(t, f.shards[0].origins[field], s.origins[field], "shard %d", s.shard)
	}
	return f.shards[0].origins[field]
}

// boards returns the boards of all shards together. The caller holds the lock if a worker runs.
func (f *fake) boards() board {
	all := board{}
	for _, s := range f.shards {
		for listing, members := range s.boards {
			all[listing] = merged(all[listing], members)
		}
	}
	return all
}

// ledgers returns the ledgers of all shards. The caller holds the lock if a worker runs.
func (f *fake) ledgers() (all []map[string]string) {
	for _, s := range f.shards {
		all = append(all, maps.Clone(s.ledger))
	}
	return all
}

// callsOf returns the calls of Apply, by shard. The caller holds the lock.
func (f *fake) callsOf() [][]call {
	all := make([][]call, len(f.shards))
	for _, c := range f.calls {
		all[c.shard] = append(all[c.shard], c)
	}
	return all
}

// has sets a member's total in a board. The caller holds the lock.
func (f *fake) has(listing, member string, t total) {
	boards := f.shards[f.of().Of(fold.Hash([]byte(member)))].boards
	if boards[listing] == nil {
		boards[listing] = map[string]total{}
	}
	boards[listing][member] = t
}

func (f *fake) wipe() { f.do(f.wiped) }

// wiped empties all shards. The caller holds the lock.
func (f *fake) wiped() {
	for _, s := range f.shards {
		s.schema, s.ledger, s.origins, s.boards, s.rules = "", map[string]string{}, map[string]string{}, board{}, map[string]string{}
		s.borders, s.bounds = map[string]int64{}, map[string][2]int64{}
	}
}

// differences lists the differences between two boards.
func differences(want, got board) string {
	var all []string
	for _, w := range slices.Sorted(maps.Keys(merged(want, got))) {
		for _, m := range slices.Sorted(maps.Keys(merged(want[w], got[w]))) {
			if a, b := want[w][m], got[w][m]; a != b {
				all = append(all, fmt.Sprintf("%s %.20q: want %v, got %v", w, m, a, b))
			}
		}
	}
	return strings.Join(all[:min(len(all), 10)], "\n")
}

func merged[V any](a, b map[string]V) map[string]V {
	all := map[string]V{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
