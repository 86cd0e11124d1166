package deadletter

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// carrier is a connection that records whether it carried the last produce request, and whether it was closed.
type carrier struct {
	net.Conn

	last  *atomic.Pointer[carrier]
	ended atomic.Bool
}

func (c *carrier) Write(b []byte) (int, error) {
	// A request starts with its size and its kind.
	if len(b) >= 6 && binary.BigEndian.Uint16(b[4:]) == uint16(kmsg.Produce) {
		c.last.Store(c)
	}
	return c.Conn.Write(b)
}

func (c *carrier) Close() error {
	c.ended.Store(true)
	return c.Conn.Close()
}

// A broker reads nothing from a connection that it throttles after a write. The transport must not give that
// connection to another request.
func TestAConnectionThatAQuotaMutesAfterAWriteIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	for ms, muted := range map[int32]bool{0: false, 50: false, 1100: true} {
		t.Run(strconv.Itoa(int(ms)), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var last atomic.Pointer[carrier]
			w.transport.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &carrier{Conn: conn, last: &last}, nil
			}
			write := func() { require.NoError(t, w.write(w.writer(), &recordbatch.Record{Value: []byte("bad")})) }
			write()
			w.cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
				return produced(r, 0, ms), nil, true
			})
			write()
			throttled := last.Load()
			require.NotNil(t, throttled, "the test sees writes")
			if ms > 0 {
				left := w.outbox.quota.left()
				require.Positive(t, left, "what the broker asked for is known")
				require.LessOrEqual(t, left, time.Duration(ms)*time.Millisecond)
			}
			if muted { // longer than a flow waits with its memory held
				w.outbox.quota.until = time.Time{}
				require.Eventually(t, throttled.ended.Load, 10*time.Second, time.Millisecond)
			}
			write()
			require.Equal(t, muted, throttled.ended.Load(), "it is closed")
			if muted {
				require.NotSame(t, throttled, last.Load())
			}
			w.all(2)
		})
	}
}
