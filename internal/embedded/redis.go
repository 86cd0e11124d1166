package embedded

// Redis for the demo and for tests: a real server if the machine has one.

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Redis is an embedded Redis on a free port of 127.0.0.1.
type Redis struct {
	Address string // host:port
	Name    string // "redis-server 7.0.15", "valkey-server 8.0.1" or "miniredis"
	// Note is the reason that a server on the PATH is not used; else empty.
	Note  string
	close func()
}

// RedisServers are the programs that StartRedis looks for on the PATH, in this order.
var RedisServers = []string{"redis-server", "valkey-server"}

// StartRedis starts the first Redis server on the PATH that works and is 6.2 or later, or else a miniredis.
// It is ready when StartRedis returns. A server that does not work is not an error: Note describes the
// problem.
func StartRedis(ctx context.Context) (*Redis, error) {
	var found []error
	for _, program := range RedisServers {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		server, err := StartRedisServer(ctx, RedisOptions{Program: path})
		if err == nil {
			err = recent(server)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			found = append(found, err)
			continue
		}
		return &Redis{Address: server.Address, Name: server.Name, Note: note(found), close: server.Close}, nil
	}
	mini, err := StartMiniredis(ctx)
	if err != nil {
		return nil, errors.Join(append(found, err)...)
	}
	mini.Note = note(found)
	return mini, nil
}

// StartMiniredis starts a miniredis inside this process, even if the machine has a server.
func StartMiniredis(ctx context.Context) (*Redis, error) {
	// A miniredis expires keys, by default, only when a test advances the time.
	return startMini(ctx, func(m *miniredis.Miniredis) { m.ClockTTL(true) })
}

// StartMiniredisAt starts a miniredis whose clock does not advance, so that nothing in it expires.
func StartMiniredisAt(ctx context.Context, now time.Time) (*Redis, error) {
	return startMini(ctx, func(m *miniredis.Miniredis) { m.SetTime(now) })
}

func startMini(ctx context.Context, prepare func(*miniredis.Miniredis)) (*Redis, error) {
	mini := miniredis.NewMiniRedis()
	prepare(mini)
	err := ctx.Err()
	if err == nil {
		err = mini.StartAddr("127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("start a miniredis: %w", err)
	}
	return &Redis{Address: mini.Addr(), Name: Miniredis, close: mini.Close}, nil
}

// Miniredis is the Name of a miniredis.
const Miniredis = "miniredis"

// recent ends a server that is too old for the scripts, and returns an error.
func recent(server *RedisServer) error {
	var major, minor int
	_, numbers, _ := strings.Cut(server.Name, " ")
	_, err := fmt.Sscanf(numbers, "%d.%d", &major, &minor)
	if err == nil && (major > 6 || major == 6 && minor >= 2) {
		return nil
	}
	server.Close()
	return errors.Join(fmt.Errorf("%s is too old: 6.2 or later is needed", server.Name), err)
}

func note(found []error) string {
	if len(found) == 0 {
		return ""
	}
	return strings.ReplaceAll(errors.Join(found...).Error(), "\n", "; ")
}

// Close ends the Redis, and leaves nothing on disk.
func (r *Redis) Close() { r.close() }
