package ingest

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker reads nothing from a connection that it throttles after a write, while the
// transport would give it to whoever asks next.
func TestAConnectionThatAQuotaMutesAfterAWriteIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	for ms, again := range map[int32]bool{50: false, 1100: true} {
		t.Run(strconv.Itoa(int(ms)), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.transport.MetadataTTL = time.Minute
			var dials atomic.Int32
			w.transport.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			d := New(w.config).worker(topic, 0, nil).newLetters(func(error) {})
			write := func() {
				require.NoError(t, d.produce(t.Context(), []letter{{time: time.Now(), value: []byte("bad"), headers: []kafka.Header{{Key: "standings-offset", Value: []byte("0")}}}}))
			}
			w.end(DeadLetterTopic(topic), 0) // its leader is known, and connected to
			write()
			before := dials.Load()
			write()
			require.Equal(t, before, dials.Load(), "without a quota there is one connection")
			w.cluster.ControlKey(int16(kmsg.Produce), func(k kmsg.Request) (kmsg.Response, error, bool) {
				q := k.(*kmsg.ProduceRequest)
				resp := q.ResponseKind().(*kmsg.ProduceResponse)
				resp.ThrottleMillis = ms
				p := kmsg.NewProduceResponseTopicPartition()
				rt := kmsg.NewProduceResponseTopic()
				rt.Topic, rt.Partitions = q.Topics[0].Topic, []kmsg.ProduceResponseTopicPartition{p}
				resp.Topics = append(resp.Topics, rt)
				return resp, nil, true
			})
			write()
			left := d.quota.left()
			require.Positive(t, left, "what the broker asked for is known")
			require.LessOrEqual(t, left, time.Duration(ms)*time.Millisecond)
			write()
			require.Equal(t, again, dials.Load() > before, "a new connection")
			require.Len(t, w.deadLetters(0), 3)
		})
	}
}
