// Package ranking keeps standings in Redis: it writes pieces behind the ledger's
// fence, and reads boards.
//
// The promise is that a window's scores are exactly what the ledger beside them
// denotes. It rests on one thing: scores and ledger change in one atomic call,
// which compares the ledger before it writes. See lua/apply.lua.
//
//	            expected ≠ ledger ──▶ moved: nothing was written
//	piece ──▶ ┤ any check fails   ──▶ why: nothing was written
//	            else              ──▶ torn:expected → scores → next
package ranking

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/redisconn"
)

// Period is how a period's windows are kept.
type Period struct {
	Rule      periods.Rule // the zero one: a built-in period's, by the store's calendar
	Layout    codec.Layout
	Retention time.Duration
}

// Config is what a store is made of.
type Config struct {
	Client  redis.UniversalClient
	Prefix  string
	Shard   int           // which of the shards it is, from 0
	Shards  ledger.Shards // how many there are; 0 is one
	Cluster string        // the Kafka cluster's id; readers may leave it empty
	Periods map[periods.Period]Period
	// Boards are those that aren't by the default rule, by name, rules.AnyBoard among them. One
	// that is nil is by the default rule.
	Boards map[string]*Ruled
	// Lists has the periods of the boards that list theirs, by name, rules.AnyBoard among them. The
	// others have all.
	Lists map[string][]periods.Period
	// Allows reports whether events may name a board, or, of rules.AnyBoard, any board; nil: they may.
	Allows func(board string) bool
	// Calendar is what the windows of built-in periods were cut by.
	Calendar periods.Calendar
	// MaxWindows is how many windows may be listed; 0 is no limit.
	MaxWindows int64
	// Timeout bounds every call.
	Timeout time.Duration
}

// Store is one shard of the standings under a prefix. It is safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	shard   int
	shards  ledger.Shards
	keys    Keys
	rules   string // the key of the rules: in a shadow that of the live boards
	borders string // the key of the borders of windows: in a shadow that of the live boards
	periods map[string]Period
	points  map[string]codec.TupleLayout // of boards by the default rule, by period
	boards  map[string]*ruled            // by other rules
	timeout time.Duration
	// maxWindows is how many windows may be listed, and windowsArg that as an argument of apply.lua.
	maxWindows int
	windowsArg string
	// What is the same in every call of apply.lua, as its arguments: its first keys, and by period
	// the layout of points.
	firstKeys  []any
	layoutArgs map[string][]any

	// lease is how long a key of a rebuild's shadow lives, in ms as text; empty for live
	// boards, whose keys live as long as their windows.
	lease string
	// encoders are as many as there may be applies on their way: with two, one is
	// being executed while the next is being sent, and a call's time is its own. Shards
	// on one server take turns besides: see redisconn.InTurn.
	encoders chan *encoder

	bannedAtOnce int // windows, by a call of ban.lua
	opened       openedBoards

	trusted atomic.Bool // see Trusted

	// readAs is the schema that reads compare with: ours, or, for a reader that
	// doesn't know the Kafka cluster, the one that was found to fit.
	readAs     atomic.Pointer[string]
	anyCluster bool

	own    Schema                 // of the configuration
	schema atomic.Pointer[string] // that is written beside: see grown.go
	allows func(board string) bool
}

const (
	callsInFlight = redisconn.CallsInTurn
	noLimit       = math.MaxInt32 // of windows
)

// New makes a store. It doesn't talk to Redis.
func New(c Config) *Store {
	layouts, own := map[periods.Period]codec.Layout{}, map[periods.Period]periods.Parts{}
	byName, points := map[string]Period{}, map[string]codec.TupleLayout{}
	for name, p := range c.Periods {
		layouts[name] = p.Layout
		if p.Rule.Name() == "" {
			p.Rule = periods.BuiltIn(name, c.Calendar)
		} else if name.Length() == 0 {
			own[name] = p.Rule.Parts()
		}
		byName[string(name)], points[string(name)] = p, p.Layout.OfPoints()
	}
	shards := max(c.Shards, 1)
	s := &Store{
		client: c.Client, prefix: c.Prefix, shard: c.Shard, shards: shards, keys: newKeys(c.Prefix, c.Shard, shards),
		own: Schema{
			Boards: c.Lists, Cluster: c.Cluster, Layouts: layouts, Own: own, Shards: int(shards),
			WeekDay: c.Calendar.WeekStart(), TimeZone: c.Calendar.Zone(),
		},
		allows:  c.Allows,
		periods: byName, points: points, boards: ruledBoards(c.Boards),
		timeout: c.Timeout, maxWindows: int(c.MaxWindows),
		anyCluster: c.Cluster == "",
		encoders:   make(chan *encoder, callsInFlight),
	}
	if c.MaxWindows == 0 {
		s.maxWindows = noLimit
	}
	s.windowsArg = strconv.Itoa(s.maxWindows)
	s.rules, s.borders = s.keys.Rules(), s.keys.Borders()
	s.ready()
	text := s.own.Text()
	s.schema.Store(&text)
	s.readAs.Store(&text)
	return s
}

func (s *Store) ready() {
	s.bannedAtOnce = bannedAtOnce
	s.opened.turn = make(chan struct{}, 1)
	k := s.keys
	s.firstKeys = []any{k.Ledger(), k.Schema(), k.Hold(), k.Windows(), k.Dropped(), k.Banned(), s.borders}
	s.layoutArgs = map[string][]any{}
	for name, p := range s.periods {
		l := &p.Layout
		s.layoutArgs[name] = []any{p.Retention.Milliseconds(), kindName(l.Kind), l.K, l.Tick, l.Max}
	}
	for range callsInFlight {
		s.encoders <- new(encoder)
	}
}

// Shadow is this store in the keys of a rebuild's shadow, which all expire by a lease. It
// takes windows without limit: whoever is refused there is refused on every board, and no
// dead letter says so. What goes beyond the limit is left out by the plan. It keeps no rules, as
// it is of no use to anybody but the rebuild: those that it reads are the live boards'.
func (s *Store) Shadow(id string, lease time.Duration) *Store {
	sh := &Store{
		client: s.client, prefix: s.prefix, shard: s.shard, shards: s.shards, keys: s.keys.shadow(id), rules: s.rules, borders: s.borders, own: s.own, allows: s.allows,
		periods: s.periods, points: s.points, boards: s.boards, timeout: s.timeout, maxWindows: noLimit, windowsArg: strconv.Itoa(noLimit),
		lease: strconv.FormatInt(lease.Milliseconds(), 10), encoders: make(chan *encoder, callsInFlight),
	}
	sh.ready()
	sh.schema.Store(s.schema.Load())
	sh.readAs.Store(s.schema.Load())
	return sh
}

// Shard is which of the shards the store is, and how many there are.
func (s *Store) Shard() (shard int, of ledger.Shards) { return s.shard, s.shards }

// Keys are the keys of the store's shard.
func (s *Store) Keys() Keys { return s.keys }

// Prefix is that of all keys.
func (s *Store) Prefix() string { return s.prefix }

// Schema is what the scores are written with, as text.
func (s *Store) Schema() string { return s.text() }

// Period is how a period's windows are kept, if it is configured.
func (s *Store) Period(name string) (Period, bool) {
	p, ok := s.periods[name]
	return p, ok
}

// MaxWindows is how many windows may be listed.
func (s *Store) MaxWindows() int { return s.maxWindows }

// Now is the clock of the server that decides which windows live.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	server, err := s.master(ctx)
	if err != nil {
		return time.Time{}, s.ofShard(err)
	}
	now, err := server.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", s.explain(err, ""))
	}
	return now, nil
}

// master is the server that has the ledger: the one there is, or a node of a cluster.
func (s *Store) master(ctx context.Context) (redis.Cmdable, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.client, nil
	}
	node, err := cluster.MasterForKey(ctx, s.keys.Ledger())
	if err != nil {
		return nil, fmt.Errorf("find the node of %q: %w", s.prefix, err)
	}
	return node, nil
}

// onOneServer does what goes by a scan's cursors on the server that has the ledger, and again
// if another has taken over meanwhile.
func (s *Store) onOneServer(ctx context.Context, do func() error) error {
	return redisconn.OnOneServer(ctx, s.timeout, s.master, do)
}
