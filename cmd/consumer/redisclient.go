package main

// Redis as it is configured: how it is dialled, and what its errors mean for whoever
// wrote the configuration.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

// dialRedis is how Redis is reached. Its error is one of the files that TLS needs.
func dialRedis(cfg *config) (ranking.Dial, error) {
	c := &cfg.redis
	secure, err := c.tls.client()
	if err != nil {
		return ranking.Dial{}, fmt.Errorf("redis.tls.%w", err)
	}
	return ranking.Dial{
		Addresses: c.addresses, Cluster: c.cluster, Master: c.sentinel.master,
		Username: c.username, Password: c.password,
		SentinelUsername: c.sentinel.username, SentinelPassword: c.sentinel.password,
		DB: int(c.db), TLS: secure, Timeout: c.timeout,
	}, nil
}

// newRedisClient dials as configured. connected, which may be nil, is called with
// every new connection before it is used.
func newRedisClient(cfg *config, connected func(context.Context, *redis.Conn) error) (redis.UniversalClient, error) {
	d, err := dialRedis(cfg)
	if err != nil {
		return nil, err
	}
	d.Connected = connected
	return ranking.NewClient(d), nil
}

// silent keeps go-redis from writing its own line for what is told anyway.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) } // before any client has a goroutine that reads it

// name is Redis in a line, as the configuration has it.
func (c *redisConfig) name() string {
	at := strings.Join(c.addresses, ", ")
	switch {
	case c.sentinel.master != "":
		return fmt.Sprintf("Redis %s of the Sentinels at %s", c.sentinel.master, at)
	case c.cluster || len(c.addresses) > 1:
		return "Redis Cluster at " + at
	}
	return "Redis at " + at
}

// explainRedis says in one line what an error of Redis means for the user.
// Where the error alone doesn't tell, the servers are asked again.
func explainRedis(ctx context.Context, err error, cfg *config) error {
	if err == nil {
		return nil
	}
	name := cfg.redis.name()
	if d, failed := dialRedis(cfg); failed == nil {
		err = d.Explain(ctx, err)
	}
	if misfit, ok := errors.AsType[*ranking.MisfitError](err); ok {
		if misfit.Server != "" {
			name = ""
		}
		return redisError{strings.TrimSpace(name + " " + oneLine(misfit)), err}
	}
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok {
		return whateverCluster(other)
	}
	if evicts, ok := errors.AsType[*ranking.EvictionError](err); ok {
		if evicts.Server == "" {
			return redisError{name + ": " + evicts.Error(), evicts}
		}
		return evicts
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	op, ofNetwork := errors.AsType[*net.OpError](err)
	dns, ofNames := errors.AsType[*net.DNSError](err)
	timeout, ofTime := errors.AsType[net.Error](err)
	switch {
	case ofNames:
		return redisError{fmt.Sprintf("can't connect to %s: %v", name, dns), err}
	case errors.Is(err, context.DeadlineExceeded), ofTime && timeout.Timeout():
		return redisError{fmt.Sprintf("no answer from %s within redis.timeout, %s", name, units.FormatDuration(cfg.redis.timeout)), err}
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
