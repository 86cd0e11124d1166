package testenv

// The Redis that the tests of a process share, and helpers for any Redis.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded"
)

// RedisServer is a Redis that tests can use.
type RedisServer struct {
	server

	private redisNode  // controls a private server; otherwise nil
	test    testing.TB // the test that owns a private server
}

// Redis returns the Redis that all tests of this process share. Key prefixes separate the tests: use Prefix.
// Tests must not send FLUSHALL or CONFIG SET to it; PrivateRedis permits these.
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	r, err := sharedRedis()
	if err != nil {
		t.Fatalf("a Redis for tests: %v", err)
	}
	return r
}

// RealRedis is Redis for a test that miniredis cannot serve; reason names the missing behaviour. With miniredis
// the test is reported as not run.
func RealRedis(t testing.TB, reason string) *RedisServer {
	t.Helper()
	r := Redis(t)
	if r.Embedded() {
		NotRun(t, "miniredis can't show it: "+reason)
	}
	return r
}

var sharedRedis = sync.OnceValues(func() (*RedisServer, error) { return startRedis(context.Background()) })

// redisWays lists the sources in the order in which they are tried.
var redisWays = []attempt[*RedisServer]{
	{Given, givenRedis}, {Container, containerRedis}, {Local, localRedis}, {Embedded, embeddedRedis},
}

func startRedis(ctx context.Context) (*RedisServer, error) {
	d, err := demanded()
	if err != nil {
		return nil, err
	}
	return choose(ctx, redisWays, d.shared)
}

func newRedis(address, name string, source Source, end func()) *RedisServer {
	return &RedisServer{server: server{address: address, name: name, source: source, close: end}}
}

func givenRedis(ctx context.Context) (*RedisServer, error) {
	address := os.Getenv(RedisVariable)
	if address == "" && handedOn(redisSourceVariable) == Embedded {
		return embeddedRedis(ctx)
	}
	if address == "" {
		return nil, fmt.Errorf("%s is not set: %w", RedisVariable, errNotHere)
	}
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	info, err := client.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", RedisVariable, address, err)
	}
	r := newRedis(address, embedded.RedisName(info), handedOn(redisSourceVariable), func() {})
	if r.name == embedded.Miniredis {
		r.source = Embedded
	}
	return r, nil
}

func embeddedRedis(ctx context.Context) (*RedisServer, error) {
	r, err := embedded.StartMiniredis(ctx)
	if err != nil {
		return nil, err
	}
	return newRedis(r.Address, r.Name, Embedded, r.Close), nil
}

// findRedisServer finds the chosen server program, or any. If the chosen one is missing it fails: otherwise
// the tests would silently run on another server.
func findRedisServer() (string, error) {
	if chosen := os.Getenv(RedisServerVariable); chosen != "" {
		path, err := exec.LookPath(chosen)
		if err != nil {
			return "", fmt.Errorf("%s: %w", RedisServerVariable, err)
		}
		return path, nil
	}
	for _, program := range embedded.RedisServers {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s on the PATH: %w", strings.Join(embedded.RedisServers, " or "), errNotHere)
}

// RedisProgram returns the path of a real Redis server, for a test that starts its own.
func RedisProgram(t testing.TB) string {
	t.Helper()
	if os.Getenv(DemandVariable) == "embedded" {
		NotRun(t, "it needs a Redis server's program")
	}
	path, err := findRedisServer()
	if errors.Is(err, errNotHere) {
		NotRun(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Name returns "redis-server 7.0.15", "valkey-server 8.0.1" or "miniredis"; for a container, the image
// follows.
func (r *RedisServer) Name() string { return r.name }

// RedisClient returns a client of the shared Redis.
func RedisClient(t testing.TB) *redis.Client {
	t.Helper()
	return Redis(t).Client(t)
}

// Client returns a client with go-redis's default settings except for its timeouts, which only detect a hang: an
// embedded server on a busy machine takes seconds for a script. The client is closed when the test ends.
func (r *RedisServer) Client(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: r.address, DialTimeout: hang, ReadTimeout: hang, WriteTimeout: hang})
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Errorf("close a Redis client: %v", err)
		}
	})
	return client
}

// hang is longer than any call of a server that is not stuck.
const hang = time.Minute

// removeKeys removes the keys that a test has left under its prefix.
func removeKeys(t testing.TB, client *redis.Client, prefix string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			t.Errorf("remove %s: %v", keys.Val(), err)
		}
	}
	if err := keys.Err(); err != nil {
		t.Errorf("remove the keys of %s: %v", prefix, err)
	}
}
