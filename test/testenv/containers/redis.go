//go:build !nodocker

package containers

// A Redis in a container of the official image, of Valkey's, or of a similar one.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded"
)

// redisContainer is a Redis in a box.
type redisContainer struct {
	*box
	image *image
	args  []string
	info  string // the result of INFO; empty if it requires a password
}

const (
	redisData = "/data"
	dumpFile  = redisData + "/dump.rdb"
)

// newRedis starts a Redis with additional arguments. It tries other ports if another process took the first
// one. The context limits it.
func newRedis(ctx context.Context, of string, args []string) (*redisContainer, error) {
	i, err := findImage(ctx, of)
	if err != nil {
		return nil, err
	}
	for {
		c := &redisContainer{image: i, args: args}
		if c.box, err = fill(ctx, i, 0, c.contents); err != nil {
			return nil, err
		}
		if err = c.start(ctx); err == nil {
			return c, nil
		}
		c.remove()
		if !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return nil, fmt.Errorf("start a Redis in a container of %s: %w", i.name, err)
		}
	}
}

func (c *redisContainer) name() string {
	name := "redis"
	if c.info != "" {
		name = embedded.RedisName(c.info)
	}
	return name + " of " + c.image.name
}

func (c *redisContainer) contents(port int) contents {
	// The port needs no further protection; protected mode would refuse all connections from outside of
	// the container.
	args := append(slices.Clone(c.image.program),
		"--port", strconv.Itoa(port), "--bind", "0.0.0.0", "--protected-mode", "no",
		"--dir", redisData, "--save", "", "--appendonly", "no")
	all := contents{arguments: append(args, c.args...), files: hostFiles(c.args)}
	if i := slices.Index(c.args, "--tls-port"); i >= 0 && i+1 < len(c.args) {
		all.ports = append(all.ports, c.args[i+1])
	}
	return all
}

func (c *redisContainer) start(ctx context.Context) error { return c.begin(ctx, c.ready) }

// ready returns nil when the server answers and has loaded its dump.
func (c *redisContainer) ready(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{
		Addr: c.address(), MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		DialTimeout: time.Second, DialerRetries: 1, ReadTimeout: time.Second,
	})
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx).Result() // Redis 6.2 accepts at most one section
	if err != nil {
		if strings.HasPrefix(err.Error(), "NOAUTH") {
			return nil // its arguments require a password, which is unknown here
		}
		return err
	}
	if strings.Contains(info, "\nloading:1") {
		return errors.New("it still loads its dump")
	}
	c.info = info
	return nil
}

func (c *redisContainer) dump() ([]byte, error) { return c.read(dumpFile) }

// removeDump replaces the container: Docker can copy a file into a container, but not remove one.
func (c *redisContainer) removeDump() error {
	c.remove()
	ctx, cancel := context.WithTimeout(context.Background(), dockerCall)
	defer cancel()
	b, err := fill(ctx, c.image, c.port, c.contents)
	if err != nil {
		return err
	}
	c.box = b
	return nil
}

// spoilDumps creates a directory with the name of the dump, which a save cannot replace.
func (c *redisContainer) spoilDumps() error { return c.write(dumpFile, nil) }
