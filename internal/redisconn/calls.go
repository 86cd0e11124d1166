package redisconn

// A call ends with its context. go-redis takes a context's deadline and never looks at its
// cancellation: a call whose context is cancelled while Redis is silent would wait for its
// timeout, and at a generation's end the whole group for it.
//
// So the connection of a call that is cancelled is closed. That also settles what becomes
// of the answer: whoever calls next has another connection and can't be given it. What the
// call did isn't known, as after a timeout.
//
// go-redis doesn't say on which connection a call goes. But it sets the call's deadline on
// the connection before it writes, and no two calls under way have the same deadline, to
// the nanosecond: by that the connection finds its call.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// calls are the calls under way of one client: a redis.Hook, and what its connections ask.
type calls struct {
	timeout time.Duration // of a call whose context has no deadline, or a later one

	mu       sync.Mutex
	underway map[int64]*call // by their deadlines, Unix ns
}

// call is guarded by the mutex of its calls.
type call struct {
	cancelled bool
	conns     []*callConn // that have carried it; more than one where it was redirected
}

func newCalls(timeout time.Duration) *calls {
	return &calls{timeout: timeout, underway: map[int64]*call{}}
}

// datedContext is a context with a deadline that is a call's alone.
type datedContext struct {
	context.Context //nolint:containedctx // it is one

	deadline time.Time
}

// Deadline is asked for by go-redis alone: the context itself ends by the one it has.
func (d datedContext) Deadline() (time.Time, bool) { return d.deadline, true }

// Within gives the calls that are made with a context a timeout in all. It is cheaper than
// context.WithTimeout: it starts no timer, since connections have one, so the context
// doesn't end by it.
func Within(ctx context.Context, timeout time.Duration) context.Context {
	deadline := time.Now().Add(timeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(deadline) {
		return ctx
	}
	return datedContext{ctx, deadline}
}

// begin makes a call known. end is to be called once it is through.
func (c *calls) begin(ctx context.Context) (dated context.Context, end func()) {
	deadline := time.Now().Add(c.timeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(deadline) {
		deadline = sooner
	}
	one := &call{}
	c.mu.Lock()
	for c.underway[deadline.UnixNano()] != nil {
		deadline = deadline.Add(-time.Nanosecond)
	}
	name := deadline.UnixNano()
	c.underway[name] = one
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // that the connection has by itself
			c.cancel(one)
		}
	})
	return datedContext{ctx, deadline}, func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.underway, name)
		for _, conn := range one.conns {
			if conn.carries == one {
				conn.carries = nil
			}
		}
	}
}

// cancel closes the connection of a call. The race is with the call's answer: both this and
// what ends the call hold the mutex, so that a connection that has gone on to another call
// isn't closed. If the answer was there first and the call hasn't ended, a connection in
// good order is lost, and go-redis finds it closed before, or when, it is used again.
func (c *calls) cancel(one *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.cancelled = true
	for _, conn := range one.conns {
		if conn.carries == one {
			conn.cut()
		}
	}
}

// carry notes that a connection is about to carry the call with a deadline. It reports
// whether there is one.
func (c *calls) carry(conn *callConn, deadline time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.underway[deadline.UnixNano()]
	if conn.carries = one; one == nil {
		return false
	}
	one.conns = append(one.conns, conn)
	if one.cancelled {
		conn.cut()
	}
	return true
}

// DialHook leaves dialling as it is.
func (c *calls) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook ends a call with its context.
func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, end := c.begin(ctx)
		defer end()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook ends calls in a pipeline with their context.
func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, end := c.begin(ctx)
		defer end()
		return next(ctx, cmds)
	}
}

// callConn is a connection that knows which call it carries.
type callConn struct {
	net.Conn
	calls   *calls
	carries *call // guarded by calls.mu
	closed  atomic.Bool

	deadline time.Time // of the call that it carried last; used by one call at a time
}

// conn wraps a connection. go-redis looks at the socket of one that has one before it uses
// it again.
func (c *calls) conn(conn net.Conn) net.Conn {
	wrapped := &callConn{Conn: conn, calls: c}
	if socket, ok := conn.(syscall.Conn); ok {
		return struct {
			*callConn
			syscall.Conn
		}{wrapped, socket}
	}
	return wrapped
}

func (c *callConn) cut() {
	c.closed.Store(true)
	_ = c.Close() // whoever reads or writes is answered below
}

// SetWriteDeadline is what go-redis calls first of all with a call's deadline. The answer
// has the same one: the connection is given both at once. Any other use of a connection,
// as of one that listens and writes side by side, has each by itself.
func (c *callConn) SetWriteDeadline(t time.Time) error {
	if c.calls.carry(c, t) {
		c.deadline = t
		return c.why(c.Conn.SetDeadline(t))
	}
	return c.why(c.Conn.SetWriteDeadline(t))
}

// SetReadDeadline is as the connection's.
func (c *callConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.Equal(c.deadline) {
		return nil
	}
	return c.why(c.Conn.SetReadDeadline(t))
}

// SetDeadline is as the connection's, but for what go-redis does before each call: it takes
// the last call's deadline off to look at the socket. One that lies ahead needn't be.
func (c *callConn) SetDeadline(t time.Time) error {
	if t.IsZero() && time.Until(c.deadline) > time.Second {
		return nil
	}
	c.deadline = time.Time{}
	return c.why(c.Conn.SetDeadline(t))
}

// Read is as the connection's.
func (c *callConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.why(err)
}

// Write is as the connection's.
func (c *callConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.why(err)
}

// why is the error of a connection, of a closed one that its call was cancelled.
func (c *callConn) why(err error) error {
	if err != nil && c.closed.Load() {
		return fmt.Errorf("%w while Redis was waited for", context.Canceled)
	}
	return err
}
