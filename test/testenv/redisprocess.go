package testenv

// A real Redis as a child process.

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/standings/standings/internal/embedded"
)

// redisProcess is a Redis on a fixed port, with a directory that outlives the process.
type redisProcess struct {
	options embedded.RedisOptions
	server  *embedded.RedisServer
}

func localRedis(ctx context.Context) (*RedisServer, error) { return newRedisProcess(ctx, nil) }

func newRedisProcess(ctx context.Context, args []string) (*RedisServer, error) {
	program, err := findRedisServer()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "standings-redis-")
	if err != nil {
		return nil, err
	}
	p := &redisProcess{options: embedded.RedisOptions{Program: program, Dir: dir, Scratch: true, Args: args}}
	if err := p.start(ctx); err != nil {
		p.remove()
		return nil, err
	}
	p.options.Port = p.server.Port // later starts use the same port
	r := newRedis(p.server.Address, p.server.Name, Local, p.remove)
	r.private = p
	return r, nil
}

func (p *redisProcess) start(ctx context.Context) error {
	server, err := embedded.StartRedisServer(ctx, p.options)
	if err == nil {
		p.server = server
	}
	return err
}

func (p *redisProcess) stop() error {
	p.server.Process.Stop(redisStart)
	return nil
}

func (p *redisProcess) kill() error {
	p.server.Process.Kill()
	return nil
}

func (p *redisProcess) pause() error  { return pause(p.server.Process) }
func (p *redisProcess) resume() error { return resume(p.server.Process) }

func (p *redisProcess) remove() {
	if p.server != nil {
		p.server.Process.Kill()
	}
	_ = os.RemoveAll(p.options.Dir) // files left in the temporary directory are harmless
}

func (p *redisProcess) file() string { return filepath.Join(p.options.Dir, "dump.rdb") }

func (p *redisProcess) dump() ([]byte, error) { return os.ReadFile(p.file()) }

func (p *redisProcess) setDump(dump []byte) error {
	if dump != nil {
		return os.WriteFile(p.file(), dump, 0o600)
	}
	if err := os.Remove(p.file()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// spoilDumps creates a directory with the name of the dump, which a save cannot replace.
func (p *redisProcess) spoilDumps() error { return os.Mkdir(p.file(), 0o700) }
