package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// silence is a proxy between a client and Redis that can hold back replies.
type silence struct {
	redis, addr string
	mu          sync.Mutex
	held        *sync.Cond
	holds       bool
	heldBack    int // replies that wait
	opened      int // connections
}

func newSilence(t *testing.T, to string) *silence {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &silence{redis: to, addr: listener.Addr().String()}
	s.held = sync.NewCond(&s.mu)
	var all sync.WaitGroup
	t.Cleanup(func() { s.hold(false); _ = listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", to)
			if err != nil {
				_ = conn.Close()
				continue
			}
			s.mu.Lock()
			s.opened++
			s.mu.Unlock()
			all.Go(func() { s.copy(behind, conn, false) })
			all.Go(func() { s.copy(conn, behind, true) })
		}
	})
	return s
}

func (s *silence) copy(to, from net.Conn, answers bool) {
	defer to.Close()   //nolint:errcheck // a test's
	defer from.Close() //nolint:errcheck // a test's
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		s.mu.Lock()
		for answers && s.holds {
			s.heldBack++
			s.held.Wait()
			s.heldBack--
		}
		s.mu.Unlock()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (s *silence) hold(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = yes
	s.held.Broadcast()
}

func (s *silence) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heldBack
}

// ended returns the result of a call, and requires the call to end long before its timeout.
func ended(t *testing.T, called <-chan error) error {
	t.Helper()
	select {
	case err := <-called:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("a call whose context is cancelled goes on waiting")
		return nil
	}
}

// silentKinds returns the kinds of clients, each with a server whose replies can be held back.
func silentKinds(t *testing.T) map[string]func(*testing.T) (*silence, redis.UniversalClient) {
	t.Helper()
	at := testenv.RedisClient(t).Options().Addr
	client := func(t *testing.T, d Settings) redis.UniversalClient {
		d.Timeout = 5 * time.Minute
		c := NewClient(d)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return map[string]func(*testing.T) (*silence, redis.UniversalClient){
		"a server": func(t *testing.T) (*silence, redis.UniversalClient) {
			s := newSilence(t, at)
			return s, client(t, Settings{Addresses: []string{s.addr}})
		},
		"a cluster": func(t *testing.T) (*silence, redis.UniversalClient) {
			node := testenv.LocalRedis(t, "--cluster-enabled", "yes")
			require.NoError(t, node.Client(t).ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
			require.Eventually(t, func() bool { return node.Client(t).Set(t.Context(), "key", "", 0).Err() == nil }, 30*time.Second, 10*time.Millisecond)
			s := newSilence(t, node.Addr())
			return s, client(t, Settings{Addresses: []string{s.addr}, Cluster: true, Network: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, s.addr)
			}})
		},
		"TLS": func(t *testing.T) (*silence, redis.UniversalClient) {
			certificate, roots := selfSigned(t)
			ends, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
			require.NoError(t, err)
			forward(t, ends, at)
			s := newSilence(t, ends.Addr().String())
			return s, client(t, Settings{Addresses: []string{s.addr}, TLS: &tls.Config{RootCAs: roots, ServerName: "redis", MinVersion: tls.VersionTLS12}})
		},
	}
}

// Observed with go-redis 9.23: the calls waited for their timeout of five minutes.
func TestACallThatIsCancelledEndsWhileRedisIsSilentAndItsLateAnswerIsNobodys(t *testing.T) {
	for name, kind := range silentKinds(t) {
		t.Run(name, func(t *testing.T) {
			s, client := kind(t)
			key := testenv.Prefix(t) + "key"
			require.NoError(t, client.Set(t.Context(), key, "early", time.Hour).Err())
			for _, calling := range []struct {
				what string
				call func(context.Context) error
			}{
				{"a command", func(ctx context.Context) error { return client.Set(ctx, key, "late", time.Hour).Err() }},
				{"a pipeline", func(ctx context.Context) error {
					_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, key); p.StrLen(ctx, key); return nil })
					return err
				}},
				{"a new connection", func(ctx context.Context) error { return client.Get(ctx, key).Err() }},
			} {
				s.hold(true)
				ctx, cancel := context.WithCancelCause(t.Context())
				called := make(chan error, 1)
				go func() { called <- calling.call(ctx) }()
				require.Eventually(t, func() bool { return s.waiting() > 0 }, 30*time.Second, time.Millisecond, calling.what)
				cancel(errors.New("the generation has ended"))
				err := ended(t, called)
				require.ErrorIs(t, err, context.Canceled, calling.what)
				require.NotErrorIs(t, err, net.ErrClosed, calling.what)
				if calling.what == "a command" {
					continue // the next connection is new, and silent from the start
				}
				s.hold(false)
				for n := range 20 {
					text := fmt.Sprint("own", n)
					require.Equal(t, text, client.Echo(t.Context(), text).Val(), calling.what)
				}
			}
		})
	}
}

func TestAConnectionGoesOnAfterACallThatIsCancelledOnceItIsThrough(t *testing.T) {
	s := newSilence(t, testenv.RedisClient(t).Options().Addr)
	client := NewClient(Settings{Addresses: []string{s.addr}, Timeout: 5 * time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, client.Ping(ctx).Err())
		cancel()
	}
	require.Equal(t, 1, s.opened)
}

// The other calls of a client must not be affected by a cancelled one.
func TestACancelledCallEndsNoOther(t *testing.T) {
	s := newSilence(t, testenv.RedisClient(t).Options().Addr)
	client := NewClient(Settings{Addresses: []string{s.addr}, Timeout: 5 * time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	s.hold(true)
	const calls = 5 // twice as many connections: a go-redis pool has ten per processor
	ctx, cancel := context.WithCancel(t.Context())
	cancelled, others := make(chan error, calls), make(chan error, calls)
	for n := range calls {
		go func() { cancelled <- client.Ping(ctx).Err() }()
		go func() {
			text := fmt.Sprint("own", n)
			got, err := client.Echo(t.Context(), text).Result()
			if err == nil && got != text {
				err = fmt.Errorf("%s is answered by %s", text, got)
			}
			others <- err
		}()
	}
	require.Eventually(t, func() bool { return s.waiting() == 2*calls }, 30*time.Second, time.Millisecond)
	cancel()
	for range calls {
		require.ErrorIs(t, ended(t, cancelled), context.Canceled)
	}
	s.hold(false)
	for range calls {
		require.NoError(t, ended(t, others))
	}
}

// A call that reaches its deadline is not cancelled: its error reports that there was no reply.
func TestACallThatHasNoAnswerInTimeSaysSo(t *testing.T) {
	s := newSilence(t, testenv.RedisClient(t).Options().Addr)
	client := NewClient(Settings{Addresses: []string{s.addr}, Timeout: 200 * time.Millisecond})
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Ping(t.Context()).Err())
	s.hold(true)
	err := client.Ping(t.Context()).Err()
	require.True(t, Unreachable(err), "%v", err)
	require.NotErrorIs(t, err, context.Canceled)
}

func TestACallWithinATimeoutOfItsOwnEndsByIt(t *testing.T) {
	s := newSilence(t, testenv.RedisClient(t).Options().Addr)
	client := NewClient(Settings{Addresses: []string{s.addr}, Timeout: 5 * time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Ping(Within(t.Context(), time.Minute)).Err())
	s.hold(true)
	called := make(chan error, 1)
	go func() { called <- client.Ping(Within(t.Context(), 200*time.Millisecond)).Err() }()
	require.True(t, Unreachable(ended(t, called)))
	sooner, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	go func() { called <- client.Ping(Within(sooner, 5*time.Minute)).Err() }()
	require.True(t, Unreachable(ended(t, called)))
}

// The deadline of a call's connection applies to reads and writes until the next call. A connection to a
// Sentinel, which listens and writes concurrently, has separate deadlines.
func TestADeadlineIsForBothWaysOnlyOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(5 * time.Second)
		near, far := net.Pipe()
		defer far.Close() //nolint:errcheck // a test's
		conn := c.conn(near)
		defer conn.Close() //nolint:errcheck // a test's
		read := func() error {
			_, err := conn.Read(make([]byte, 1))
			return err
		}
		answered := func(after time.Duration) {
			go func() { time.Sleep(after); _, _ = far.Write([]byte("+")) }()
		}

		listening := make(chan error, 1)
		go func() { listening <- read() }()
		require.NoError(t, conn.SetWriteDeadline(time.Now().Add(time.Second)))
		answered(time.Minute)
		require.NoError(t, <-listening)

		began := time.Now()
		ctx, end := c.begin(t.Context())
		deadline, _ := ctx.Deadline()
		require.NoError(t, conn.SetWriteDeadline(deadline))
		require.NoError(t, conn.SetReadDeadline(deadline))
		require.ErrorIs(t, read(), os.ErrDeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(began))
		end()

		require.NoError(t, conn.SetDeadline(time.Time{}), "the next call")
		answered(time.Hour)
		require.NoError(t, read())
	})
}

// For every order of a call's reply, its cancellation and the next call on the connection, only a
// connection that carries the cancelled call is closed.
func TestOnlyTheConnectionThatCarriesACancelledCallIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(time.Minute)
		pair := func() (*callConn, net.Conn) {
			near, far := net.Pipe()
			return c.conn(near).(*callConn), far
		}
		carried := func(conn *callConn, ctx context.Context) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.NoError(t, conn.SetWriteDeadline(deadline))
		}
		first, far := pair()
		second, far2 := pair()
		defer far.Close()    //nolint:errcheck // a test's
		defer far2.Close()   //nolint:errcheck // a test's
		defer second.Close() //nolint:errcheck // a test's
		ctx, cancel := context.WithCancel(t.Context())
		a, endA := c.begin(ctx)
		b, endB := c.begin(t.Context())
		x, _ := a.Deadline()
		y, _ := b.Deadline()
		require.NotEqual(t, x, y, "two that begin at once have deadlines of their own")
		carried(first, a)
		carried(second, a) // redirected to another node
		carried(first, b)  // this connection now carries another call
		cancel()
		synctest.Wait()
		require.False(t, first.closed.Load())
		require.True(t, second.closed.Load())
		third, far3 := pair()
		defer far3.Close() //nolint:errcheck // a test's
		carriedLate := third.SetWriteDeadline(x)
		require.ErrorIs(t, carriedLate, context.Canceled, "a call that is sent on after it was cancelled")
		endA()
		endB()
		require.Empty(t, c.underway)
		require.Nil(t, first.carries)
		require.NoError(t, first.Close())
	})
}
