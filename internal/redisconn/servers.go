package redisconn

// What the servers report of themselves.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// EachMaster calls do with a client of every server that takes writes, of a cluster
// at once.
func EachMaster(ctx context.Context, client redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("find the masters of Redis: a client of type %T doesn't tell them", client)
}

// ViaFailover reports whether a client's server is the one that the Sentinels name.
func ViaFailover(c *redis.Client) bool { return c.Options().Addr == "FailoverClient" }

// Memory is the memory of one server, in bytes.
type Memory struct {
	Server    string // host:port; "master" behind Sentinels
	Used, Max int64  // Max is its maxmemory, 0 for no limit
}

// Memories is the memory of every master. A server that doesn't report it, for a missing
// right to INFO, isn't in the result.
func Memories(ctx context.Context, client redis.UniversalClient) ([]Memory, error) {
	var mu sync.Mutex
	var all []Memory
	err := EachMaster(ctx, client, func(ctx context.Context, c *redis.Client) error {
		server := c.Options().Addr
		if ViaFailover(c) {
			server = "master"
		}
		m, ok, err := MemoryOf(ctx, c)
		if ok {
			m.Server = server
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m)
		}
		return err
	})
	return all, NameRight(err, "", "")
}

// MemoryOf is the memory of one server, without its name; ok is false if it doesn't report it.
func MemoryOf(ctx context.Context, c redis.Cmdable) (m Memory, ok bool, err error) {
	fields, err := info(ctx, c, "memory")
	if err != nil {
		return Memory{}, false, err
	}
	m.Used, err = strconv.ParseInt(fields["used_memory"], 10, 64)
	if err != nil {
		return Memory{}, false, nil //nolint:nilerr // it isn't reported
	}
	m.Max, _ = strconv.ParseInt(fields["maxmemory"], 10, 64) // some hosts leave it out
	return m, true, nil
}

// info is what INFO reports in a section, by name; nothing if it may not be asked.
// (go-redis's InfoMap panics on an answer without a section's head.)
func info(ctx context.Context, c redis.Cmdable, section string) (map[string]string, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil && !unavailable(err) {
		return nil, err
	}
	return infoFields(text), nil
}

// infoFields are the lines of INFO, by name.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
