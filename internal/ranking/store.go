// Package ranking keeps standings in Redis. It writes pieces, guarded by the ledger, and reads boards.
//
// The package promises that a window's scores count exactly the events that the ledger denotes. The promise
// relies on one rule: scores and ledger change in one atomic call, which compares the ledger before it
// writes. See lua/apply.lua.
//
//	            expected ≠ ledger ──▶ moved: nothing was written
//	piece ──▶ ┤ any check fails   ──▶ why: nothing was written
//	            else              ──▶ torn:expected → scores → next
//
// A store is one shard. Who uses which part of it:
//
//	workers   apply.go, ruled.go, start.go, settle.go, extend.go
//	readers   query.go, read.go, each.go, names.go; package boards reads all shards together
//	jobs      seal.go, sealrecord.go, retire.go, largest.go, bans.go; package boards calls them on all shards
//	rebuilds  compare.go, lock.go; packages shadow and reshard
//	commands  guard.go; package inventory reads and removes what is under a prefix
//
// All of them use call.go, errors.go, keys.go, listing.go, pages.go and schema.go.
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

// Period is the configuration of a period's windows.
type Period struct {
	Rule      periods.Rule // the zero Rule is a built-in period's, by the store's calendar
	Layout    codec.Layout
	Retention time.Duration
}

// Config is the configuration of a store.
type Config struct {
	Client  redis.UniversalClient
	Prefix  string
	Shard   int           // the shard's index, from 0
	Shards  ledger.Shards // the number of shards; 0 means 1
	Cluster string        // the Kafka cluster's id; readers may leave it empty
	Periods map[periods.Period]Period
	// Boards has the rules of the boards that don't use the default rule, by name or rules.AnyBoard. A nil
	// rule is the default rule.
	Boards map[string]*Ruled
	// Lists has the periods of the boards that list theirs, by name or rules.AnyBoard. Other boards have
	// all periods.
	Lists map[string][]periods.Period
	// Allows reports whether events may name a board or, for rules.AnyBoard, any board. If it is nil, they
	// may.
	Allows func(board string) bool
	// Calendar defines the windows of built-in periods.
	Calendar periods.Calendar
	// MaxWindows limits the number of listed windows; 0 means no limit.
	MaxWindows int64
	// Timeout limits every call.
	Timeout time.Duration
}

// Store is one shard of the standings under a prefix. It is safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	shard   int
	shards  ledger.Shards
	keys    Keys
	rules   string // key of the rules; a shadow uses the live boards' key
	borders string // key of the windows' borders; a shadow uses the live boards' key
	periods map[string]Period
	points  map[string]codec.TupleLayout // layouts of boards with the default rule, by period
	boards  map[string]*ruled            // boards with other rules
	timeout time.Duration
	// maxWindows limits the number of listed windows. windowsArg is the same as an argument of apply.lua.
	maxWindows int
	windowsArg string
	// Arguments that are equal in every call of apply.lua: its first keys, and by period the layout of
	// points.
	firstKeys  []any
	layoutArgs map[string][]any

	// lease is how long a key of a rebuild's shadow lives, in ms. It is empty for live boards: their keys
	// live as long as their windows.
	lease string
	// encoders limits the apply calls in flight. With two, Redis executes one call while the next one is
	// sent, and the duration of each call can be measured. Shards on one server also take turns: see
	// redisconn.InTurn.
	encoders chan *encoder

	bannedAtOnce int // windows in a call of ban.lua
	opened       openedBoards

	trusted atomic.Bool // see Trusted

	// readAs is the schema that reads compare with: our own, or, in a reader that doesn't know the Kafka
	// cluster, a schema found in Redis that fits ours.
	readAs     atomic.Pointer[string]
	anyCluster bool

	own    Schema                 // by the configuration
	schema atomic.Pointer[string] // that this store writes with: see grown.go
	allows func(board string) bool
}

const (
	callsInFlight = redisconn.CallsInTurn
	noLimit       = math.MaxInt32 // of windows
)

// New returns a store. It doesn't connect to Redis.
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
		client: c.Client, prefix: c.Prefix, shard: c.Shard, shards: shards, keys: KeysOf(c.Prefix, c.Shard, shards),
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

// Bare returns a store without periods, for what doesn't depend on the configuration: keys, hashes, locks and
// the state.
func Bare(client redis.UniversalClient, prefix string, shard int, of ledger.Shards, timeout time.Duration) *Store {
	keys := KeysOf(prefix, shard, of)
	return &Store{client: client, prefix: prefix, shard: shard, shards: of, keys: keys, rules: keys.Rules(), borders: keys.Borders(), timeout: timeout}
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

// Shadow returns this store with the keys of a rebuild's shadow, which all expire by a lease. A shadow has
// no limit on windows: an event that is refused there would be refused on every board, and no dead letter
// would record it. The rebuild's plan leaves out the windows beyond the limit. Only the rebuild reads a
// shadow, so it stores no rules; it reads those of the live boards.
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

// Shard returns the shard's index and the number of shards.
func (s *Store) Shard() (shard int, of ledger.Shards) { return s.shard, s.shards }

// Keys returns the keys of the store's shard.
func (s *Store) Keys() Keys { return s.keys }

// Prefix returns the prefix of all keys.
func (s *Store) Prefix() string { return s.prefix }

// Schema returns the text of the schema that the store writes with.
func (s *Store) Schema() string { return s.text() }

// Period returns the configuration of a period, if it has one.
func (s *Store) Period(name string) (Period, bool) {
	p, ok := s.periods[name]
	return p, ok
}

// MaxWindows returns the limit on listed windows.
func (s *Store) MaxWindows() int { return s.maxWindows }

// Now returns the time of the server that decides which windows are over.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	server, err := s.master(ctx)
	if err != nil {
		return time.Time{}, s.OfShard(err)
	}
	now, err := server.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", s.explain(err, ""))
	}
	return now, nil
}

// master returns the server that has the ledger: the only server, or a node of a cluster.
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
