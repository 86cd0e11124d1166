package testenv

// A Redis of a test's own, to be killed, paused, configured and rolled back.

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/standings/standings/internal/embedded"
)

// redisProcess is what a private server is started again with.
type redisProcess struct {
	options embedded.RedisOptions
	server  *embedded.RedisServer
}

// redisStart bounds a start, the loading of a dump included.
const redisStart = 30 * time.Second

// PrivateRedis starts a Redis for this test alone, with more arguments such as
// "--maxmemory", "60mb". It saves nothing by itself (see Dump) and ends with the
// test. There is no embedded one: where the machine has no Redis server, the test
// is reported as not run.
func PrivateRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	program, err := findRedisServer()
	if errors.Is(err, errNotHere) {
		NotRun(t, "it needs a Redis of its own: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &redisProcess{options: embedded.RedisOptions{Program: program, Dir: t.TempDir(), Scratch: true, Args: args}}
	t.Cleanup(func() {
		if p.server != nil {
			p.server.Process.Kill()
		}
	})
	r := &RedisServer{way: Local, private: p, test: t}
	r.Start()
	r.address, r.name = p.server.Address, p.server.Name
	p.options.Port = p.server.Port // from now on
	return r
}

func (r *RedisServer) own() *redisProcess {
	if r.private == nil {
		panic("testenv: " + r.String() + " is shared: only a PrivateRedis can be stopped")
	}
	return r.private
}

// Start starts a stopped or killed server again, on its port, with the dump.rdb of
// its Dir if there is one.
func (r *RedisServer) Start() {
	p := r.own()
	r.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), redisStart)
	defer cancel()
	server, err := embedded.StartRedisServer(ctx, p.options)
	if err != nil {
		r.test.Fatalf("a private Redis: %v", err)
	}
	p.server = server
}

// Stop ends the server in order. What wasn't dumped is lost, unless its arguments
// say otherwise.
func (r *RedisServer) Stop() { r.own().server.Process.Stop(redisStart) }

// Kill ends the server at once, as a crash would.
func (r *RedisServer) Kill() { r.own().server.Process.Kill() }

// Pause makes the server hang: connections stay open, nothing is answered.
func (r *RedisServer) Pause() { pause(r.test, r.own().server.Process) }

// Resume ends a Pause.
func (r *RedisServer) Resume() { resume(r.test, r.own().server.Process) }

// Dir is the server's directory, with dump.rdb where there is one.
func (r *RedisServer) Dir() string { return r.own().options.Dir }

// Dump makes the server save what it holds now, and gives the dump.
func (r *RedisServer) Dump() []byte {
	path := filepath.Join(r.Dir(), "dump.rdb")
	r.test.Helper()
	if err := r.Client(r.test).Save(r.test.Context()).Err(); err != nil {
		r.test.Fatalf("dump a private Redis: %v", err)
	}
	dump, err := os.ReadFile(path)
	if err != nil {
		r.test.Fatalf("dump a private Redis: %v", err)
	}
	return dump
}

// Restart kills the server and starts it with a dump, an older one for instance:
// all that was written since is gone. Without a dump it starts empty.
func (r *RedisServer) Restart(dump []byte) {
	path := filepath.Join(r.Dir(), "dump.rdb")
	r.test.Helper()
	r.Kill()
	err := os.WriteFile(path, dump, 0o600)
	if dump == nil {
		if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		r.test.Fatalf("restart a private Redis: %v", err)
	}
	r.Start()
}
