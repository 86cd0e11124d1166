package redisconn

// A call ends with its context. go-redis uses a context's deadline but ignores its cancellation: a call
// whose context is cancelled while Redis does not reply would wait for its timeout, and at the end of a
// generation the whole consumer group would wait for it.
//
// So this file closes the connection of a cancelled call. A late reply then cannot reach the next call,
// which uses another connection. As after a timeout, it is unknown whether the server has executed the
// call.
//
// go-redis does not tell which connection carries a call. But before it writes, it sets the call's deadline
// on the connection, and all calls in flight have different deadlines, to the nanosecond. So the connection
// finds its call by the deadline.

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

// calls holds the calls in flight of one client. It is a redis.Hook, and its connections look up their
// calls here.
type calls struct {
	unhooked

	timeout time.Duration // of a call whose context has no deadline, or a later one

	mu       sync.Mutex
	underway map[int64]*call // by deadline, Unix ns
}

// call is guarded by the mutex of its calls.
type call struct {
	cancelled bool
	conns     []*callConn // the connections that have carried it; several if it was redirected
}

func newCalls(timeout time.Duration) *calls {
	return &calls{timeout: timeout, underway: map[int64]*call{}}
}

// datedContext is a context with a deadline that no other call has.
type datedContext struct {
	context.Context //nolint:containedctx // it is one

	deadline time.Time
}

// Deadline is used only by go-redis: the context ends by its own deadline.
func (d datedContext) Deadline() (time.Time, bool) { return d.deadline, true }

// Within returns a context whose calls have the given timeout in all. It is cheaper than
// context.WithTimeout, since it starts no timer: the connection has the deadline, and the context itself
// does not end at it.
func Within(ctx context.Context, timeout time.Duration) context.Context {
	deadline := time.Now().Add(timeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(deadline) {
		return ctx
	}
	return datedContext{ctx, deadline}
}

// begin registers a call. The caller calls end when the call has returned.
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
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // the connection enforces the deadline itself
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

// cancel closes the connection of a call. It races with the call's reply. Both cancel and end hold the
// mutex, so a connection that already carries another call is not closed. If the reply arrives first and
// the call has not ended yet, a healthy connection is closed; go-redis detects that before or when it uses
// the connection again.
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

// carry records that a connection is about to carry the call with the given deadline. It returns false if
// there is no such call.
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

// ProcessHook ends a call with its context.
func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, end := c.begin(ctx)
		defer end()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook ends the calls of a pipeline with their context.
func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, end := c.begin(ctx)
		defer end()
		return next(ctx, cmds)
	}
}

// callConn is a connection that knows the call that it carries.
type callConn struct {
	net.Conn
	calls   *calls
	carries *call // guarded by calls.mu
	closed  atomic.Bool

	deadline time.Time // of the last call that it carried; used by one call at a time
}

// conn wraps a connection. It keeps syscall.Conn, since go-redis checks the socket before it reuses a
// connection.
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
	_ = c.Close() // a concurrent Read or Write returns the error of why
}

// SetWriteDeadline is the first method that go-redis calls for a call, with the call's deadline. The reply
// has the same deadline, so the connection gets both at once. If no call has this deadline, as on a
// connection that listens and writes concurrently, only the write deadline is set.
func (c *callConn) SetWriteDeadline(t time.Time) error {
	if c.calls.carry(c, t) {
		c.deadline = t
		return c.why(c.Conn.SetDeadline(t))
	}
	return c.why(c.Conn.SetWriteDeadline(t))
}

// SetReadDeadline sets the read deadline, unless SetWriteDeadline has already set it for a call.
func (c *callConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.Equal(c.deadline) {
		return nil
	}
	return c.why(c.Conn.SetReadDeadline(t))
}

// SetDeadline sets both deadlines. Before each call go-redis clears the deadline to check the socket; a
// deadline that is still more than a second ahead is kept.
func (c *callConn) SetDeadline(t time.Time) error {
	if t.IsZero() && time.Until(c.deadline) > time.Second {
		return nil
	}
	c.deadline = time.Time{}
	return c.why(c.Conn.SetDeadline(t))
}

// Read reads from the connection.
func (c *callConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.why(err)
}

// Write writes to the connection.
func (c *callConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.why(err)
}

// why returns the error of a connection, or the cancellation if cut has closed it.
func (c *callConn) why(err error) error {
	if err != nil && c.closed.Load() {
		return fmt.Errorf("%w while Redis was waited for", context.Canceled)
	}
	return err
}
