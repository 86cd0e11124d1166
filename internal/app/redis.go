package app

// The configured Redis: connections to it, and what its errors mean for the operator.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/units"
)

// dialRedis returns the settings for connections. It returns an error about one of the files for TLS.
func dialRedis(cfg *config.Config) (redisconn.Settings, error) {
	c := &cfg.Redis
	secure, err := c.TLS.Client()
	if err != nil {
		return redisconn.Settings{}, fmt.Errorf("redis.tls.%w", err)
	}
	return redisconn.Settings{
		Addresses: c.Addresses, Cluster: c.Cluster, Master: c.Sentinel.Master,
		Username: c.Username, Password: c.Password,
		SentinelUsername: c.Sentinel.Username, SentinelPassword: c.Sentinel.Password,
		DB: int(c.DB), TLS: secure, Timeout: c.Timeout,
	}, nil
}

// NewRedis returns a client as configured. connected, which may be nil, is called with every new connection
// before it is used.
func NewRedis(cfg *config.Config, connected func(context.Context, *redis.Conn) error) (redis.UniversalClient, error) {
	d, err := dialRedis(cfg)
	if err != nil {
		return nil, err
	}
	d.Connected = connected
	return redisconn.NewClient(d), nil
}

// NewReadingRedis returns a client as configured, for reads only. It repeats a call that is interrupted, for
// example by a failover.
func NewReadingRedis(cfg *config.Config) (redis.UniversalClient, error) {
	d, err := dialRedis(cfg)
	if err != nil {
		return nil, err
	}
	d.ReadsOnly = true
	return redisconn.NewClient(d), nil
}

// silent suppresses go-redis's own log lines, because callers report these errors.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) } // before any client starts a goroutine that reads it

// ExplainRedis returns in one line what an error of Redis means for the operator, and names the shard if there
// are several. If the error alone is not enough, it asks the servers again.
func ExplainRedis(ctx context.Context, err error, cfg *config.Config) error {
	line := explainRedis(ctx, err, cfg)
	shard, ok := errors.AsType[*ranking.ShardError](err)
	if !ok || errors.Is(err, context.Canceled) || strings.Contains(line.Error(), shard.Name()) {
		return line
	}
	return &ranking.ShardError{Shard: shard.Shard, Of: shard.Of, Addr: shard.Addr, Err: line}
}

func explainRedis(ctx context.Context, err error, cfg *config.Config) error {
	if err == nil {
		return nil
	}
	name := cfg.Redis.Name()
	if d, failed := dialRedis(cfg); failed == nil {
		err = d.Explain(ctx, err)
	}
	if mismatch, ok := errors.AsType[*redisconn.ServerMismatchError](err); ok {
		if mismatch.Server != "" {
			name = ""
		}
		return redisError{strings.TrimSpace(name + " " + oneLine(mismatch)), err}
	}
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok {
		return whateverCluster(other)
	}
	if evicts, ok := errors.AsType[*redisconn.EvictionError](err); ok {
		if evicts.Server == "" {
			return redisError{name + ": " + evicts.Error(), evicts}
		}
		return evicts
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if redisconn.IsFull(err) && !errors.As(err, new(*shadow.FullError)) {
		return redisError{name + " is full: it is at its maxmemory and refuses writes. Raise it (CONFIG SET maxmemory), or remove unused boards (consumer drop)", err}
	}
	op, ofNetwork := errors.AsType[*net.OpError](err)
	dns, ofNames := errors.AsType[*net.DNSError](err)
	timeout, ofTime := errors.AsType[net.Error](err)
	switch {
	case ofNames:
		return redisError{fmt.Sprintf("can't connect to %s: %v", name, dns), err}
	case errors.Is(err, context.DeadlineExceeded), ofTime && timeout.Timeout():
		return redisError{fmt.Sprintf("no answer from %s within redis.timeout, %s", name, units.FormatDuration(cfg.Redis.Timeout)), err}
	case errors.Is(err, io.EOF):
		return redisError{name + " closes the connection without a reply: make sure that it is Redis, not Kafka (redis.addresses)", err}
	case ofNetwork && op.Op == "dial":
		return redisError{fmt.Sprintf("can't connect to %s: %v", name, op), err}
	}
	return redisError{name + ": " + oneLine(err), err}
}

type redisError struct {
	line string
	err  error
}

func (e redisError) Error() string { return e.line }
func (e redisError) Unwrap() error { return e.err }

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

// whateverCluster removes the Kafka cluster from a difference between schemas, because a reader does not know
// the cluster.
func whateverCluster(e *ranking.SchemaError) error {
	var wanted, found map[string]json.RawMessage
	if json.Unmarshal([]byte(e.Wanted), &wanted) != nil || json.Unmarshal([]byte(e.Found), &found) != nil {
		return e
	}
	wanted["cluster"] = found["cluster"]
	text, err := json.Marshal(wanted)
	if err != nil {
		return e
	}
	return &ranking.SchemaError{Prefix: e.Prefix, Wanted: string(text), Found: e.Found}
}

// ExplainShards returns what the errors of shards mean, like ExplainRedis: one line for all shards of a server
// that have the same error. A nil error means that the shard has none.
func ExplainShards(ctx context.Context, errs []error, cfg *config.Config) []string {
	type kind struct{ addr, text string }
	var order []kind
	shards := map[kind][]string{}
	of := len(errs)
	for i, err := range errs {
		if err == nil {
			continue
		}
		k := kind{text: ""}
		line := ExplainRedis(ctx, err, cfg)
		if shard, ok := errors.AsType[*ranking.ShardError](line); ok {
			k.addr, k.text = shard.Addr, strings.Replace(line.Error(), shard.Name()+": ", "", 1)
		} else {
			k.text = line.Error()
		}
		if len(shards[k]) == 0 {
			order = append(order, k)
		}
		shards[k] = append(shards[k], fmt.Sprint(i))
	}
	var lines []string
	for _, k := range order {
		lines = append(lines, shardsName(shards[k], of, k.addr)+k.text)
	}
	return lines
}

// shardsName returns the prefix for an error of some shards; empty if there is only one shard.
func shardsName(some []string, of int, addr string) string {
	if of == 1 {
		return ""
	}
	name := "shard " + some[0]
	if len(some) > 1 {
		name = "shards " + units.Names(some)
	}
	name += fmt.Sprintf(" of %d", of)
	if addr != "" {
		name += " on " + addr
	}
	return name + ": "
}

// ClusterGaps returns what a cluster does not serve, one line each; none if it serves all slots.
func ClusterGaps(ctx context.Context, client *redis.ClusterClient, cfg *config.Config) ([]string, error) {
	all, err := redisconn.Cover(ctx, client)
	if err != nil {
		return nil, ExplainRedis(ctx, err, cfg)
	}
	return all.Gaps(), nil
}
