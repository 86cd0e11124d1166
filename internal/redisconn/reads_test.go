package redisconn

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// cutter is a proxy between a client and Redis. It cuts connections that send TIME, for the given number of
// times.
func cutter(t *testing.T, to string, cuts int64) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(cuts)
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", to)
			if err != nil {
				_ = conn.Close()
				return
			}
			end := func() { _ = conn.Close(); _ = behind.Close() }
			all.Go(func() { defer end(); _, _ = io.Copy(conn, behind) })
			all.Go(func() {
				defer end()
				asked := make([]byte, 4096)
				for {
					n, err := conn.Read(asked)
					if err != nil || strings.Contains(string(asked[:n]), "time") && left.Add(-1) >= 0 {
						return
					}
					if _, err := behind.Write(asked[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	return listener.Addr().String()
}

func TestACallThatIsCutOffIsMadeAgainByWhoOnlyReads(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, redis.UniversalClient) error{
		"a call": func(ctx context.Context, c redis.UniversalClient) error { return c.Time(ctx).Err() },
		"a pipeline": func(ctx context.Context, c redis.UniversalClient) error {
			p := c.Pipeline()
			before, asked := p.Exists(ctx, testenv.Prefix(t)), p.Time(ctx)
			_, err := p.Exec(ctx)
			if err == nil {
				err = before.Err()
			}
			if err == nil {
				require.WithinDuration(t, time.Now(), asked.Val(), time.Hour)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				reads bool
				cuts  int64
				fails bool
			}{{true, 0, false}, {true, 3, false}, {true, 1000, true}, {false, 1, true}} {
				c := NewClient(Settings{
					Addresses: []string{cutter(t, testenv.Redis(t).Addr(), test.cuts)}, Timeout: 5 * time.Second, ReadsOnly: test.reads,
				})
				err := call(t.Context(), c)
				require.Equal(t, test.fails, err != nil, "%+v: %v", test, err)
				require.NoError(t, c.Close())
			}
		})
	}
}

func TestWhoCannotBeReachedIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		&net.OpError{Op: "read", Err: context.DeadlineExceeded}, // a net.Error that is a timeout
		&handshakeError{"redis:6379", io.EOF},
		&noMasterError{io.EOF},
		context.Canceled,
		hiddenReplyError("READONLY"),
	} {
		if cutOff(err) {
			t.Errorf("%v (%T) is taken for a connection that was cut off", err, err)
		}
	}
}

func TestAReplicaThatSentinelsNameIsNotTheMaster(t *testing.T) {
	t.Parallel()
	master := testenv.LocalRedis(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := testenv.LocalRedis(t, "--replicaof", host+" "+port)
	s := Settings{Master: "board", Timeout: 5 * time.Second}
	for _, test := range []struct {
		server *testenv.RedisServer
		says   string
	}{
		{master, ""},
		{replica, "the server that the Sentinels name as the master is a replica: a failover is under way"},
	} {
		c := redis.NewClient(&redis.Options{Addr: test.server.Addr(), OnConnect: s.greet, MaxRetries: -1})
		err := c.Time(t.Context()).Err()
		if test.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.says)
			require.True(t, cutOff(err))
		}
		require.NoError(t, c.Close())
	}
}
