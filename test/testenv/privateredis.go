package testenv

// A Redis of a test's own, to be killed, paused, configured and rolled back.

import (
	"context"
	"testing"
	"time"
)

// redisNode is what a private Redis runs in: a child process or a container.
type redisNode interface {
	start(ctx context.Context) error // on its port, with its dump
	stop() error                     // in order
	kill() error                     // at once
	pause() error
	resume() error
	remove() // with its dump

	dump() ([]byte, error)     // the last it has saved
	setDump(dump []byte) error // of a server that is killed; nil: it has none
	spoilDumps() error         // it can't save any more
}

// redisStart bounds a start, the loading of a dump included.
const redisStart = 2 * time.Minute

// PrivateRedis starts a Redis for this test alone, with more arguments such as
// "--maxmemory", "60mb"; one may name a file of this machine. It saves nothing by
// itself (see Dump) and ends with the test. There is no embedded one: where the
// machine has no Redis server, the test is reported as not run.
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

// LocalRedis is PrivateRedis for a test whose servers reach each other, as replicas
// and the nodes of a cluster do: a local process even where containers are demanded.
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

// Start starts a stopped or killed server again, on its port, with its dump if it
// has one.
func (r *RedisServer) Start() {
	node := r.own()
	r.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), redisStart)
	defer cancel()
	did(r.test, "start Redis again at "+r.address, node.start(ctx))
}

// Stop ends the server in order. What wasn't dumped is lost, unless its arguments
// say otherwise.
func (r *RedisServer) Stop() { did(r.test, "stop Redis", r.own().stop()) }

// Kill ends the server at once, as a crash would.
func (r *RedisServer) Kill() { did(r.test, "kill Redis", r.own().kill()) }

// Pause makes the server hang: connections stay open, nothing is answered.
func (r *RedisServer) Pause() { did(r.test, "pause Redis", r.own().pause()) }

// Resume ends a Pause.
func (r *RedisServer) Resume() { did(r.test, "resume Redis", r.own().resume()) }

// Dump makes the server save what it holds now, and gives the dump.
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

// Restart kills the server and starts it with a dump, an older one for instance:
// all that was written since is gone. Without a dump it starts empty.
func (r *RedisServer) Restart(dump []byte) {
	r.Kill()
	r.test.Helper()
	did(r.test, "give Redis a dump", r.own().setDump(dump))
	r.Start()
}
