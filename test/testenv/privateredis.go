package testenv

// A Redis for one test, which may kill, pause, configure and roll it back.

import (
	"context"
	"testing"
	"time"
)

// redisNode is the child process or the container that a private Redis runs in.
type redisNode interface {
	start(ctx context.Context) error // on its port, with its dump
	stop() error                     // gracefully
	kill() error                     // at once
	pause() error
	resume() error
	remove() // also deletes its dump

	dump() ([]byte, error)     // the last dump that it saved
	setDump(dump []byte) error // for a killed server; nil: without a dump
	spoilDumps() error         // makes later saves fail
}

// redisStart limits a start, including the time to load a dump.
const redisStart = 2 * time.Minute

// PrivateRedis starts a Redis for this test alone, with additional arguments such as "--maxmemory", "60mb". An
// argument may name a file of this machine. The server saves only on request (see Dump), and ends with the
// test. There is no embedded private Redis: if the machine has no Redis server, the test is reported as not
// run.
func PrivateRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := private(t, "Redis", []attempt[*RedisServer]{
		{Local, func(ctx context.Context) (*RedisServer, error) {
			if err := quickRedis(); err != nil {
				return nil, err
			}
			return newRedisProcess(ctx, args)
		}},
		{Container, func(ctx context.Context) (*RedisServer, error) { return newRedisContainer(ctx, args) }},
	})
	r.test = t
	t.Cleanup(r.close)
	return r
}

// LocalRedis is PrivateRedis for a test whose servers connect to each other, such as replicas and the nodes of a
// cluster. It starts a local process even if containers are demanded.
func LocalRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := local(t, "Redis", func(ctx context.Context) (*RedisServer, error) { return newRedisProcess(ctx, args) })
	r.test = t
	t.Cleanup(r.close)
	return r
}

func (r *RedisServer) own() redisNode {
	if r.test == nil {
		panic("testenv: " + r.String() + " is shared: only a PrivateRedis can be stopped")
	}
	r.test.Helper()
	return r.private
}

// Start starts a stopped or killed server again on its port, with its dump if it has one.
func (r *RedisServer) Start() {
	node := r.own()
	r.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), redisStart)
	defer cancel()
	did(r.test, "start Redis again at "+r.address, node.start(ctx))
}

// Stop shuts the server down gracefully. Data that was not dumped is lost, unless the server's arguments
// configure otherwise.
func (r *RedisServer) Stop() { did(r.test, "stop Redis", r.own().stop()) }

// Kill ends the server at once, as a crash would.
func (r *RedisServer) Kill() { did(r.test, "kill Redis", r.own().kill()) }

// Pause makes the server hang: connections stay open, but it answers nothing.
func (r *RedisServer) Pause() { did(r.test, "pause Redis", r.own().pause()) }

// Resume ends a Pause.
func (r *RedisServer) Resume() { did(r.test, "resume Redis", r.own().resume()) }

// Dump makes the server save its current data, and returns the dump.
func (r *RedisServer) Dump() []byte {
	node := r.own()
	r.test.Helper()
	did(r.test, "make Redis save", r.Client(r.test).Save(r.test.Context()).Err())
	dump, err := node.dump()
	did(r.test, "read the dump of Redis", err)
	return dump
}

// SpoilDumps makes every later dump of the server fail.
func (r *RedisServer) SpoilDumps() { did(r.test, "spoil dumps of Redis", r.own().spoilDumps()) }

// Restart kills the server and starts it with the given dump, which may be an older one: later writes are
// lost. Without a dump the server starts empty.
func (r *RedisServer) Restart(dump []byte) {
	r.Kill()
	r.test.Helper()
	did(r.test, "give Redis a dump", r.own().setDump(dump))
	r.Start()
}
