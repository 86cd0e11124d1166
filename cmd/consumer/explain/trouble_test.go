package explain

// Brokers that refuse, hold back, cut the log meanwhile, or don't answer.

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/cmd/consumer/cli"
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
