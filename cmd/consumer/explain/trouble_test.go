package explain

// This file tests brokers that reject requests, throttle, truncate the log during the reading, or do not
// respond.

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/clitest"
)

func TestWithoutDeadLettersNobodyKnowsWhatWasRefused(t *testing.T) {
	w := newWorld(t)
	for i, points := range []int{99_999_999, 5} {
		w.earns(t, at(i), "rich", points)
		w.counts(t)
	}
	w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "points.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r := w.explains(t, 1, "global", "rich")
	require.Nil(t, r.Agree)
	require.Equal(t, []string{"counted", "counted"}, r.results())
	require.Equal(t, []string{noteLetters, noteRange}, r.kinds())
	require.Nil(t, r.Log)
}

func TestWithoutTheGroupItAnswersAllTheSame(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.earns(t, at(-3000+i), "ann", 1)
	}
	w.earns(t, at(5), "ann", 1)
	w.counts(t)
	require.NoError(t, w.kafka.DeleteRecords("points", 0, 2))
	w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, TopLevel: true, Err: kerr.GroupAuthorizationFailed, Count: -1})
	w.explains(t, 0, "global", "ann")
}

func TestALogThatIsCutWhileItIsReadIsNamed(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.earns(t, at(i), "ann", 1)
	}
	w.counts(t)
	cfg := w.config(t)
	l, err := openLogs(&cli.Program{Stderr: new(bytes.Buffer)}, cfg, cfg.Kafka.Topics)
	require.NoError(t, err)
	defer l.close()
	s := &source{Partition: ledger.Partition{Topic: "points"}, logged: logged{log: kafkaconn.Log{End: 3}}}
	require.NoError(t, l.cut(t.Context(), []*source{s}))
	require.False(t, s.gone)
	require.NoError(t, w.kafka.DeleteRecords("points", 0, 2))
	require.NoError(t, l.cut(t.Context(), []*source{s}))
	require.True(t, s.gone)
	require.Equal(t, int64(2), s.from)
}

func TestAQuotaIsWaitedOutAndSaidOnce(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	var fetches atomic.Int64
	w.kafka.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		r := q.ResponseKind().(*kmsg.FetchResponse)
		r.ThrottleMillis = 20
		return r, nil, fetches.Add(1)%3 > 0
	})
	code, out, errs := clitest.Execute(t, Command, w.environ, "explain", "global", "weekly", "ann", "--window", "2100-W10")
	require.Equal(t, 0, code, out+errs)
	require.Equal(t, 1, strings.Count(errs, "a quota of Kafka's"), errs)
	require.Contains(t, out, "1 event counted")
}

func TestItEndsAtOnceWhereItIsInterrupted(t *testing.T) {
	w := newWorld(t)
	w.earns(t, at(1), "ann", 1)
	w.counts(t)
	for _, key := range []kmsg.Key{kmsg.Metadata, kmsg.Fetch} {
		ctx, stop := context.WithCancel(t.Context())
		w.kafka.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			stop()
			return nil, nil, false
		})
		var out, errs bytes.Buffer
		p := &cli.Program{Environ: w.environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
		began := time.Now()
		code := p.Run(ctx, p.Root("unknown", Command(p)), []string{"explain", "global", "weekly", "ann", "--window", "2100-W10"})
		require.Equal(t, 2, code)
		require.Equal(t, "consumer: interrupted\n", errs.String())
		require.Less(t, time.Since(began), 10*time.Second)
		stop()
	}
}

// twelve publishes a batch of twelve events of ann that takes more than 9 MiB to decompress.
func (w *world) twelve(t *testing.T, recorded time.Time) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Second),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()), kgo.ProducerBatchMaxBytes(16<<20))
	require.NoError(t, err)
	defer client.Close()
	var all []*kgo.Record
	for range 12 {
		value := fmt.Sprintf(`{"user_id":"ann","points":100,"pad":"%s"}`, strings.Repeat("x", 1<<20-100))
		all = append(all, &kgo.Record{Topic: "points", Timestamp: recorded, Value: []byte(value)})
	}
	require.NoError(t, client.ProduceSync(t.Context(), all...).FirstErr())
}

func TestABatchThatIsTooLargeIsNamedByItsOffsets(t *testing.T) {
	w := newWorld(t, "STANDINGS_FOLD_MEMORY=44MiB")
	w.earns(t, at(1), "ann", 25)
	w.twelve(t, at(2))
	w.twelve(t, at(-86400))    // in the week before
	w.twelve(t, at(8*86400+1)) // in the week after, when this window accepts no more events
	w.earns(t, at(8*86400+2), "bob", 1)
	w.counts(t)
	r := w.explains(t, 0, "global", "ann")
	require.Equal(t, []string{"counted"}, r.results())
	require.Equal(t, []string{noteBatch}, r.kinds())
	require.Regexp(t, `^points/0: offsets 1 to 12 can't be read, and don't count: the snappy record batch up to offset 12 takes 1\d{7} bytes to decompress, `+
		`and fold_memory allows 9437184. Events of this member may be among them$`, r.Notes[0].Text)
	w.redis.Del(t.Context(), w.home(t, "ann").Keys().Listed("global:weekly:2100-W10"))
	require.Nil(t, w.explains(t, 1, "global", "ann").Agree)
}

func TestEventsOfABatchThatWasTooLargeAreDeadLetters(t *testing.T) {
	w := newWorld(t, "STANDINGS_FOLD_MEMORY=44MiB")
	w.earns(t, at(1), "ann", 25)
	w.twelve(t, at(2))
	w.earns(t, at(3), "ann", 1)
	w.counts(t)
	w.environ = append(w.environ, "STANDINGS_FOLD_MEMORY=256MiB")
	r := w.explains(t, 0, "global", "ann", "--limit", "0")
	require.Equal(t, counts{Counted: 2, DeadLetters: 12}, r.Counts)
	require.Equal(t, "dead_letter too_large", r.results()[1])
	require.Equal(t, []string{noteBatch}, r.kinds())
	require.Equal(t, "12 events of this member in record batches that a consumer had too little memory to read (too_large): consumer rebuild counts them", r.Notes[0].Text)
}

func TestOffsetsOfDeadLettersForBatchesAreMerged(t *testing.T) {
	s := &source{}
	for _, of := range [][2]int64{{12, 14}, {10, 20}, {30, 30}, {12, 20}, {21, 22}} {
		s.refuse(&deadletter.Origin{Reason: "too_large", Offset: of[0], Last: of[1]})
	}
	s.passed = merged(s.passed)
	for offset := range int64(40) {
		_, refused := s.refusedAs(offset)
		require.Equal(t, offset >= 10 && offset <= 22 || offset == 30, refused, offset)
	}
}
