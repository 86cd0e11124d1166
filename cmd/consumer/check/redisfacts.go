package check

// gatherRedis queries Redis for the facts that check judges. It leaves nothing behind.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
)

// redisFacts holds Redis's answers.
type redisFacts struct {
	kind    string // a single server, a cluster, the Sentinels' master
	db      int64
	err     error         // no server can be reached: then nothing else is known
	servers []serverFacts // the masters
	rights  error         // from trying all commands of the scripts
	// state is the content of all shards; noState is the error of the first shard that cannot be read.
	state   *ledger.State
	noState error
	// Per shard: its content, and its report. problems has the reasons why shards cannot be read, by master.
	states   []ledger.State
	shards   []shards.Report
	problems []string
	// Only for a cluster: the slots that it does not serve.
	cluster bool
	number  string // how the configured number of shards differs from Redis
	gaps    []string
	gapsErr error
	// difference is how the configured schema differs from the one in Redis; nil if they are equal. added
	// are the periods that a start would add.
	difference error
	added      []ledger.Added
	lost       []string // windows that are listed but whose keys are gone
	lostErr    error    // from looking for lost windows
	// others are windows that were written under another rule than their boards have now.
	others    []*ranking.RuleError
	othersErr error // from looking for such windows
}

// serverFacts describes one master by its own answers.
type serverFacts struct {
	address  string // empty if there is only one master: the configuration names it
	err      error
	info     map[string]string // INFO; empty if this user may not run it
	settings map[string]string // CONFIG GET; empty if this user may not run it
	eviction error             // the result of the same check as at start and on every new connection
	ahead    time.Duration     // how far its clock is ahead of this machine's
	within   time.Duration     // the precision of ahead: half a round trip
}

func gatherRedis(ctx context.Context, r *app.Reader) *redisFacts {
	cfg := r.Config
	f := &redisFacts{kind: "a single server", db: cfg.Redis.DB}
	cluster, ok := r.Client.(*redis.ClusterClient)
	if ok {
		f.kind, f.cluster = "a cluster's master", true
	} else if cfg.Redis.Sentinel.Master != "" {
		f.kind = "the Sentinels' master " + cfg.Redis.Sentinel.Master
	}
	states, errs := r.Boards.States(ctx)
	err := f.takeStates(ctx, r, states, errs)
	_, mismatch := errors.AsType[*redisconn.ServerMismatchError](f.noState)
	if away := !slices.Contains(errs, nil); away && (mismatch || redisconn.Unreachable(err) || errors.Is(err, context.DeadlineExceeded)) {
		f.err = f.noState
		return f
	}
	var mu sync.Mutex
	err = redisconn.EachMaster(ctx, r.Client, func(ctx context.Context, c *redis.Client) error {
		m := queryServer(ctx, cfg, c)
		mu.Lock()
		defer mu.Unlock()
		f.servers = append(f.servers, m)
		return nil
	})
	if err != nil {
		f.err = app.ExplainRedis(ctx, err, cfg)
		return f
	}
	slices.SortFunc(f.servers, func(x, y serverFacts) int { return strings.Compare(x.address, y.address) })
	if len(f.servers) == 1 {
		f.servers[0].address = ""
	}
	if f.cluster {
		ctx, cancel := context.WithTimeout(ctx, cfg.Redis.Timeout)
		f.gaps, f.gapsErr = app.ClusterGaps(ctx, cluster, cfg)
		cancel()
	}
	f.rights = r.Boards.TryCommands(ctx)
	if f.state != nil && f.state.Windows > 0 {
		f.lost, f.lostErr = r.Boards.Lost(ctx)
		f.lostErr = app.ExplainRedis(ctx, f.lostErr, cfg)
		f.others, f.othersErr = r.Boards.OtherRules(ctx)
		f.othersErr = app.ExplainRedis(ctx, f.othersErr, cfg)
	}
	return f
}

// takeStates stores the state of every shard, and returns the first error. If one shard cannot be read,
// there is no combined state.
func (f *redisFacts) takeStates(ctx context.Context, r *app.Reader, states []ledger.State, errs []error) error {
	f.states, f.problems = states, app.ExplainShards(ctx, errs, r.Config)
	f.shards = shards.Reports(r.Boards.Shards(), states, errs)
	for _, err := range errs {
		if err != nil {
			f.noState = app.ExplainRedis(ctx, err, r.Config)
			return err
		}
	}
	f.state = new(ledger.Together(states))
	return nil
}

// queriedSettings lists the settings that are judged. Each needs a call of its own, because Redis 6.2
// accepts one name per call.
var queriedSettings = []string{
	"maxmemory-policy", "save", "appendfsync", "lazyfree-lazy-expire",
	"lazyfree-lazy-server-del",
}

// queryServer queries one master, within redis.timeout in total.
func queryServer(ctx context.Context, cfg *config.Config, c *redis.Client) serverFacts {
	ctx, cancel := context.WithTimeout(ctx, cfg.Redis.Timeout)
	defer cancel()
	m := serverFacts{address: c.Options().Addr}
	conn := c.Conn()
	defer conn.Close() //nolint:errcheck // it goes back to its pool
	var err error
	if err = conn.Time(ctx).Err(); err == nil { // the connection is open: the next call takes one round trip
		var theirs time.Time
		sent := time.Now()
		theirs, err = conn.Time(ctx).Result()
		m.within = time.Since(sent) / 2
		m.ahead = theirs.Sub(sent.Add(m.within))
	}
	if err != nil {
		m.err = app.ExplainRedis(ctx, fmt.Errorf("ask for the time: %w", err), cfg)
		return m
	}
	m.eviction = redisconn.CheckEviction(ctx, conn, cfg.Redis.AssumeNoeviction)
	if text, err := conn.Info(ctx).Result(); err == nil {
		m.info = map[string]string{}
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				m.info[key] = value
			}
		}
	}
	m.settings = map[string]string{}
	for _, name := range queriedSettings {
		all, err := conn.ConfigGet(ctx, name).Result()
		if err != nil {
			break // a user without the right to read the first setting cannot read the others
		}
		if value, ok := all[name]; ok {
			m.settings[name] = value
		}
	}
	return m
}
