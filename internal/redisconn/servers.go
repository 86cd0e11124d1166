package redisconn

// Information that servers report about themselves.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// EachMaster calls do with a client of every master; for a cluster, concurrently.
func EachMaster(ctx context.Context, client redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("find the masters of Redis: a client of type %T doesn't tell them", client)
}

// ViaFailover reports whether the client follows the master that Sentinels name.
func ViaFailover(c *redis.Client) bool { return c.Options().Addr == "FailoverClient" }

// Memory is the memory of one server, in bytes.
type Memory struct {
	Server    string // host:port; "master" behind Sentinels
	Used, Max int64  // Max is maxmemory; 0 means no limit
}

// Memories returns the memory of every master. It omits servers that do not report it, for example because
// the right to INFO is missing.
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

// MemoryOf returns the memory of one server, without its name. ok is false if the server does not report
// it.
func MemoryOf(ctx context.Context, c redis.Cmdable) (m Memory, ok bool, err error) {
	fields, err := info(ctx, c, "memory")
	if err != nil {
		return Memory{}, false, err
	}
	m.Used, err = strconv.ParseInt(fields["used_memory"], 10, 64)
	if err != nil {
		return Memory{}, false, nil //nolint:nilerr // it isn't reported
	}
	m.Max, _ = strconv.ParseInt(fields["maxmemory"], 10, 64) // some hosts omit it
	return m, true, nil
}

// info returns the fields of a section of INFO by name; none if the command is not available. (go-redis's
// InfoMap panics on a reply without a section header.)
func info(ctx context.Context, c redis.Cmdable, section string) (map[string]string, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil && !unavailable(err) {
		return nil, err
	}
	return infoFields(text), nil
}

// infoFields returns the fields of an INFO reply by name.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
