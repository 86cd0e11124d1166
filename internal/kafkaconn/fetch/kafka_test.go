package fetch

// Tests with the best Kafka that this machine has.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/test/testenv"
)

func TestEveryCodecOfAProducerIsRead(t *testing.T) {
	k := testenv.Kafka(t)
	topic := testenv.Topic(t, 1, nil)
	var want []string
	for i, codec := range []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	} {
		c := client(t, k.Addr(), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec))
		var records []*kgo.Record
		for j := range 500 {
			v := fmt.Sprintf("%d/%d %s", i, j, strings.Repeat("compressible ", 20))
			want = append(want, v)
			records = append(records, &kgo.Record{Value: []byte(v)})
		}
		require.NoError(t, c.ProduceSync(t.Context(), records...).FirstErr())
	}
	f, _, _ := fetcherOf(t, k.Addr(), topic)
	if got, next := follow(t, f, 0); !slices.Equal(got, want) {
		t.Fatalf("%d records of %d, next %d", len(got), len(want), next)
	}
	if got, _ := follow(t, f, 777); !slices.Equal(got, want[777:]) { // inside a batch
		t.Fatalf("%d records from 777 on", len(got))
	}
}

func TestAbortedTransactionsAreLeftOutAndOpenOnesAreWaitedFor(t *testing.T) {
	k := testenv.Kafka(t)
	topic := testenv.Topic(t, 1, nil)
	f, _, _ := fetcherOf(t, k.Addr(), topic)
	transactions(t, k.Addr(), f)
	// From every offset, including those inside transactions and of markers, the rest is the same as that
	// of the whole log.
	whole, end := follow(t, f, 0)
	for from := range end {
		got, next := follow(t, f, from)
		if len(got) > len(whole) || !slices.Equal(got, whole[len(whole)-len(got):]) || next != end {
			t.Fatalf("from %d: next %d: %v", from, next, got)
		}
	}
}

// transactions interleaves producers, some of which abort. It requires that only committed values are read,
// and none after the start of an open transaction.
func transactions(t *testing.T, address string, f *Fetcher) { //nolint:thelper // where in its story it failed is what tells
	one := client(t, address, kgo.TransactionalID(t.Name()+"1"), kgo.DefaultProduceTopic(f.Topic))
	two := client(t, address, kgo.TransactionalID(t.Name()+"2"), kgo.DefaultProduceTopic(f.Topic))
	free := client(t, address, kgo.DefaultProduceTopic(f.Topic))
	put := func(c *kgo.Client, v string) {
		t.Helper()
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Value: []byte(v)}).FirstErr())
	}
	begin := func(c *kgo.Client) {
		t.Helper()
		require.NoError(t, c.BeginTransaction())
	}
	end := func(c *kgo.Client, how kgo.TransactionEndTry) {
		t.Helper()
		require.NoError(t, c.EndTransaction(t.Context(), how))
	}
	var want []string
	for range 3 {
		begin(one)
		begin(two)
		put(one, "committed 1")
		put(two, "aborted 1")
		put(free, "free 1")
		put(one, "committed 2")
		put(two, "aborted 2")
		end(two, kgo.TryAbort)
		put(free, "free 2")
		end(one, kgo.TryCommit)
		begin(two)
		put(two, "committed 3")
		end(two, kgo.TryCommit)
		want = append(want, "committed 1", "free 1", "committed 2", "free 2", "committed 3")
	}
	begin(one)
	put(one, "open")
	put(free, "behind")
	got, next := followTo(t, f, 0, len(want))
	if !slices.Equal(got, want) {
		t.Fatalf("next %d: %v", next, got)
	}
	end(one, kgo.TryCommit)
	if got, _ = followTo(t, f, next, 2); !slices.Equal(got, []string{"open", "behind"}) {
		t.Fatalf("after the commit: %v", got)
	}
}

// followTo reads until it has n values. A broker reports the end of a transaction before its marker is in
// the log, and values are not readable until then.
func followTo(t *testing.T, f *Fetcher, offset int64, n int) (values []string, next int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var more []string
		more, offset = follow(t, f, offset)
		if values = append(values, more...); len(values) >= n || time.Now().After(deadline) {
			return values, offset
		}
	}
}

func TestTheBrokersTimeIsReadUnderLogAppendTime(t *testing.T) {
	k := testenv.RealKafka(t, "LogAppendTime set on a topic")
	topic := testenv.Topic(t, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	c := client(t, k.Addr(), kgo.DefaultProduceTopic(topic))
	before := time.Now().Add(-time.Minute).UnixMilli()
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x"), Timestamp: time.UnixMilli(1)}).FirstErr())
	f, _, _ := fetcherOf(t, k.Addr(), topic)
	res, err := f.Fetch(t.Context(), 0)
	require.NoError(t, err)
	defer res.Release()
	var r recordbatch.Reader
	defer r.Close()
	res.Read(&r, 0)
	if rec, err := r.Next(); err != nil || rec.Time < before {
		t.Fatalf("%+v: %v", rec, err)
	}
}

func TestABrokerThatHangsHoldsACallForItsDeadlineAlone(t *testing.T) {
	testenv.RealKafka(t, "a broker that is paused")
	k := testenv.PrivateKafka(t, nil)
	topic := k.Topic(t, 1, nil)
	c := client(t, k.Addr(), kgo.DefaultProduceTopic(topic))
	produce(t, c, "before")
	f, _, m := fetcherOf(t, k.Addr(), topic)
	_, next := follow(t, f, 0)
	k.Pause()
	began := time.Now()
	_, err := f.Fetch(t.Context(), next)
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > f.MaxWait+Grace+20*time.Second {
		t.Fatalf("after %s: %v", took, err)
	}
	k.Resume()
	if err := f.Drop(t.Context()); err != nil || m.now() != 0 {
		t.Fatalf("%d bytes are held: %v", m.now(), err)
	}
	produce(t, c, "after")
	if got, _ := follow(t, f, next); !slices.Equal(got, []string{"after"}) {
		t.Fatal(got)
	}
}
