package embedded

// Redis for the demo and for tests: a real server if the machine has one.

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
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
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start a miniredis: %w", err)
	}
	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start a miniredis: %w", err)
	}
	// A miniredis expires keys, by default, only when a test advances the time.
	mini.ClockTTL(true)
	return &Redis{Address: mini.Addr(), Name: Miniredis, close: mini.Close}, nil
}

// StartMiniredisAt starts a miniredis whose clock does not advance, so that nothing in it expires.
func StartMiniredisAt(ctx context.Context, now time.Time) (*Redis, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start a miniredis: %w", err)
	}
	mini := miniredis.NewMiniRedis()
	mini.SetTime(now)
	if err := mini.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start a miniredis: %w", err)
	}
	return &Redis{Address: mini.Addr(), Name: Miniredis, close: mini.Close}, nil
}

// Miniredis is the Name of a miniredis.
const Miniredis = "miniredis"

// recent ends a server that is too old for the scripts, and returns an error.
func recent(server *RedisServer) error {
	major, minor, err := version(server.Name)
	if err == nil && (major > 6 || major == 6 && minor >= 2) {
		return nil
	}
	server.Close()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is too old: 6.2 or later is needed", server.Name)
}

// version reads the numbers of "redis-server 7.0.15".
func version(name string) (major, minor int, err error) {
	_, numbers, _ := strings.Cut(name, " ")
	parts := strings.SplitN(numbers, ".", 3)
	if len(parts) < 2 {
		return 0, 0, fmt.Errorf("%q has no version", name)
	}
	major, err = strconv.Atoi(parts[0])
	if err == nil {
		minor, err = strconv.Atoi(parts[1])
	}
	if err != nil {
		return 0, 0, fmt.Errorf("version of %q: %w", name, err)
	}
	return major, minor, nil
}

func note(found []error) string {
	if len(found) == 0 {
		return ""
	}
	return strings.ReplaceAll(errors.Join(found...).Error(), "\n", "; ")
}

// Close ends the Redis, and leaves nothing on disk.
func (r *Redis) Close() { r.close() }
