// Package ranking keeps standings in Redis: it writes pieces behind the ledger's
// fence, and reads boards.
//
// The promise is that a window's scores are exactly what the ledger beside them
// denotes. It rests on one thing: scores and ledger change in one atomic call,
// which compares the ledger before it writes. See apply.lua.
//
//	            expected ≠ ledger ──▶ moved: nothing was written
//	piece ──▶ ┤ any check fails   ──▶ why: nothing was written
//	            else              ──▶ torn:expected → scores → next
package ranking

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	_ "embed"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
)

var (
	//go:embed apply.lua
	applySource string
	//go:embed start.lua
	startSource string
	//go:embed state.lua
	stateSource string
	//go:embed report.lua
	reportSource string
	//go:embed read.lua
	readSource string
	//go:embed lost.lua
	lostSource string
	//go:embed retire.lua
	retireSource string
	//go:embed dropboards.lua
	dropBoardsSource string
	//go:embed try.lua
	trySource string

	//go:embed lock.lua
	lockSource string
	//go:embed release.lua
	releaseSource string
	//go:embed renew.lua
	renewSource string
	//go:embed both.lua
	bothSource string
	//go:embed there.lua
	thereSource string
	//go:embed swap.lua
	swapSource string
	//go:embed compare.lua
	compareSource string
	//go:embed tryrebuild.lua
	tryRebuildSource string

	applyScript  = newScript(applySource)
	startScript  = newScript(startSource)
	stateScript  = newScript(stateSource)
	reportScript = newScript(reportSource)
	readScript   = newScript(readSource)
	lostScript   = newScript(lostSource)
	retireScript = newScript(retireSource)
	tryScript    = newScript(trySource)

	dropBoardsScript = newScript(dropBoardsSource)

	lockScript    = newScript(lockSource)
	releaseScript = newScript(releaseSource)
	renewScript   = newScript(renewSource)
	bothScript    = newScript(bothSource)
	thereScript   = newScript(thereSource)
	swapScript    = newScript(swapSource)
	compareScript = newScript(compareSource)

	tryRebuildScript = newScript(tryRebuildSource)
)

// Period is how a period's windows are kept.
type Period struct {
	Layout    codec.Layout
	Retention time.Duration
}

// Config is what a store is made of.
type Config struct {
	Client  redis.UniversalClient
	Prefix  string
	Cluster string // the Kafka cluster's id; readers may leave it empty
	Periods map[periods.Period]Period
	// Calendar is what windows were cut by.
	Calendar periods.Calendar
	// MaxWindows is how many windows may be listed; 0 is no limit.
	MaxWindows int64
	// Timeout bounds every call.
	Timeout time.Duration
}

// Store is one shard of the standings under a prefix. It is safe for concurrent use.
type Store struct {
	client   redis.UniversalClient
	prefix   string
	keys     keys
	schema   string
	periods  map[string]Period
	calendar periods.Calendar
	timeout  time.Duration
	// maxWindows is how many windows may be listed, and windowsArg that as apply.lua is told.
	maxWindows int
	windowsArg string

	// lease is how long a key of a rebuild's shadow lives, in ms as text; empty for live
	// boards, whose keys live as long as their windows.
	lease string
	// touched is told of every piece that was sent; nil but in a shadow that is being
	// compared.
	touched atomic.Pointer[touched]

	// encoders are as many as there may be applies on their way: with two, one is
	// being executed while the next is being sent, and a call's time is its own.
	encoders chan *encoder

	flying atomic.Int32 // applies on their way

	trusted atomic.Bool // see Trusted

	// readAs is the schema that reads compare with: ours, or, for a reader that
	// doesn't know the Kafka cluster, the one that was found to fit.
	readAs     atomic.Pointer[string]
	anyCluster bool
}

const (
	callsInFlight = 2
	noLimit       = math.MaxInt32 // of windows
)

// New makes a store. It doesn't talk to Redis.
func New(c Config) *Store {
	layouts := map[periods.Period]codec.Layout{}
	byName := map[string]Period{}
	for name, p := range c.Periods {
		layouts[name] = p.Layout
		byName[string(name)] = p
	}
	s := &Store{
		client: c.Client, prefix: c.Prefix, keys: newKeys(c.Prefix, 0),
		schema: Schema{
			Cluster: c.Cluster, Layouts: layouts, Shards: 1,
			WeekDay: c.Calendar.WeekStart(), TimeZone: c.Calendar.Zone(),
		}.Text(),
		periods: byName, calendar: c.Calendar, timeout: c.Timeout, maxWindows: int(c.MaxWindows),
		anyCluster: c.Cluster == "",
		encoders:   make(chan *encoder, callsInFlight),
	}
	if c.MaxWindows == 0 {
		s.maxWindows = noLimit
	}
	s.windowsArg = strconv.Itoa(s.maxWindows)
	s.ready()
	return s
}

func (s *Store) ready() {
	s.readAs.Store(&s.schema)
	for range callsInFlight {
		s.encoders <- new(encoder)
	}
}

// shadow is this store in the keys of a rebuild's shadow, which all expire by a lease. It
// takes windows without limit: whoever is refused there is refused on every board, and no
// dead letter says so. What goes beyond the limit is left out by the plan.
func (s *Store) shadow(id string, lease time.Duration) *Store {
	sh := &Store{
		client: s.client, prefix: s.prefix, keys: s.keys.shadow(id), schema: s.schema,
		periods: s.periods, calendar: s.calendar, timeout: s.timeout, maxWindows: noLimit, windowsArg: strconv.Itoa(noLimit),
		lease: strconv.FormatInt(lease.Milliseconds(), 10), encoders: make(chan *encoder, callsInFlight),
	}
	sh.ready()
	return sh
}

// script is a Lua script and the name that Redis knows it by.
type script struct{ source, sha string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see above
	return script{source, hex.EncodeToString(sum[:])}
}

// run calls a script with arguments that begin with room for three: the command,
// the script and the number of keys. The slice isn't copied and can be reused
// after the call. A server that doesn't know the script is sent it.
func (s *Store) run(ctx context.Context, sc script, keys int, args []any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args[0], args[1], args[2] = "evalsha", sc.sha, keys
	reply, err := s.client.Do(ctx, args...).Slice()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		args[0], args[1] = "eval", sc.source
		reply, err = s.client.Do(ctx, args...).Slice()
	}
	if s.lease != "" && IsFull(err) {
		return nil, &FullError{Err: err}
	}
	return reply, s.withRoom(ctx, asRights(err, sc.source, s.prefix))
}

// Now is the clock of the server that decides which windows live.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	server, err := s.master(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now, err := server.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", asRights(err, "", s.prefix))
	}
	return now, nil
}

// master is the server that has the ledger: the one there is, or a node of a cluster.
func (s *Store) master(ctx context.Context) (redis.Cmdable, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.client, nil
	}
	node, err := cluster.MasterForKey(ctx, s.keys.ledger())
	if err != nil {
		return nil, fmt.Errorf("find the node of %q: %w", s.prefix, err)
	}
	return node, nil
}

// texts reads a reply's elements as texts.
func texts(reply []any) ([]string, error) {
	all := make([]string, len(reply))
	for i, v := range reply {
		switch v := v.(type) {
		case string:
			all[i] = v
		case int64:
			all[i] = fmt.Sprint(v)
		default:
			return nil, faultf("an unexpected reply: element %d is %T", i, v)
		}
	}
	return all, nil
}
