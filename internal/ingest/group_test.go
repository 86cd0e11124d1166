package ingest

// This file tests members of a group on the fake broker: generations, their ends, and topics that grow.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
)

// watch counts requests of a kind.
func (w *world) watch(key int16) *atomic.Int32 {
	n := new(atomic.Int32)
	w.cluster.ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return n
}

const (
	keyJoin  = 11
	keyLeave = 13
)

func (w *world) admin() *kadm.Client { return kadm.NewClient(w.client) }

// noted waits until the group's offsets are at the logs' ends.
func (w *world) noted(partitions ...int) {
	w.t.Helper()
	for _, p := range partitions {
		end := w.end(topic, p)
		eventually(w.t, fmt.Sprintf("offset %d of partition %d is committed", end, p), func() bool {
			all, err := w.admin().FetchOffsets(context.Background(), w.config.Group)
			if err != nil {
				return false
			}
			o, ok := all.Lookup(topic, int32(p))
			return ok && o.At == end
		})
	}
}

func TestASignalEndsAConsumerAfterItsLastCommitWithoutJoiningAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	for p := range 6 {
		w.send(p, some(fmt.Sprint(p, "-"), 50, 5)...)
	}
	c, stop := w.consumer(func(c *Config) { c.CommitInterval = time.Hour })
	w.reaches(0, 1, 2, 3, 4, 5)
	require.Len(t, c.Snapshot().Partitions, 6)
	joins, leaves := w.watch(keyJoin), w.watch(keyLeave)
	began := time.Now()
	require.NoError(t, stop())
	require.Less(t, time.Since(began), 30*time.Second)
	require.Zero(t, joins.Load())
	require.Equal(t, int32(1), leaves.Load())
	eventually(t, "all memory is given back", func() bool { return c.Budget.Used() == 0 })
	require.Empty(t, c.Snapshot().Partitions)
	w.noted(0, 1, 2, 3, 4, 5)
}

// The other program's members send more metadata than kafka-go can parse, and kafka-go's error ends in
// %!w(<nil>).
func TestAnotherProgramInTheGroupIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	_, stop := w.consumer(nil)
	w.reaches(0, 1)
	other, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.ClientID("theirs"), kgo.ConsumerGroup(w.config.Group), kgo.ConsumeTopics(topic),
		kgo.Balancers(kgo.RoundRobinBalancer()), kgo.SessionTimeout(10*time.Second))
	require.NoError(t, err)
	defer other.Close()
	said := func() string {
		for _, e := range w.logs.FilterMessageSnippet("couldn't join the group").All() {
			return fmt.Sprint(e.ContextMap()["error"])
		}
		return ""
	}
	eventually(t, "it is named", func() bool { return strings.Contains(said(), "another program") })
	require.Contains(t, said(), "kafka.group")
	require.NotContains(t, said(), "%!")
	require.NoError(t, stop())
}

func TestAHungBrokerDoesNotKeepAConsumerFromEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.send(0, some("a", 50, 5)...)
	c, stop := w.consumer(func(c *Config) {
		c.CommitInterval = time.Hour
		c.ShutdownTime = 2 * time.Second
		c.Timeout = time.Minute
	})
	w.reaches(0, 1)
	hung, asked := make(chan struct{}), make(chan struct{}, 1)
	w.cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-hung
		return nil, nil, false
	})
	<-asked
	began := time.Now()
	require.NoError(t, stop())
	require.Less(t, time.Since(began), 30*time.Second, "leaving is best effort")
	w.said(1, "the broker doesn't answer")
	close(hung)
	eventually(t, "all memory is given back", func() bool { return c.Budget.Used() == 0 })
}

// hanging are standings whose calls of Apply hang until their context ends.
type hanging struct {
	shards.Standings
	calls *atomic.Int32
}

func (h *hanging) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	h.calls.Add(1)
	<-ctx.Done()
	return h.Standings.Apply(ctx, p)
}

func TestAHungRedisHoldsUpTheEndOnlyForTheLastCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	for p := range 6 {
		w.send(p, some("a", 50, 5)...)
	}
	calls := new(atomic.Int32)
	_, stop := w.consumer(func(c *Config) {
		c.Standings = slices.Clone(c.Standings)
		for i, s := range c.Standings {
			c.Standings[i] = &hanging{s, calls}
		}
	})
	eventually(t, "all of them hang", func() bool { return int(calls.Load()) == 6*int(of) })
	began := time.Now()
	require.NoError(t, stop())
	require.GreaterOrEqual(t, time.Since(began), lastCall)
	require.Less(t, time.Since(began), lastCall+30*time.Second)
	w.standings.do(func() {
		require.Len(t, w.standings.calls, 6*int(of))
		for _, c := range w.standings.calls {
			require.ErrorIs(t, c.err, context.Canceled)
		}
	})
}

func TestATopicsStartIsWrittenAndCommittedBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.send(0, some("a", 5, 5)...)
	w.committed.err = errLost
	w.config.Start.From = start.FromEarliest
	r := w.worker(0, nil)
	eventually(t, "it has tried to commit", func() bool { return r.status.Line().State == workers.StateWaiting })
	require.Zero(t, w.stats.FetchBytes.Load())
	w.committed.Lock()
	w.committed.err = nil
	w.committed.Unlock()
	w.reaches(0)
	w.standings.do(func() {
		for _, s := range w.standings.shards {
			for _, field := range []string{"events/0", "events/1"} {
				require.Regexp(t, `^0 0 [\w-]{22}@0$`, s.origins[field])
			}
		}
	})
}

func TestEventsThatAreGoneHaltAPartitionOrAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.send(0, some("a", 10, 5)...)
	first := w.worker(0, nil)
	w.reaches(0)
	first.stop(t)
	w.send(0, some("gone", 10, 5)...)
	w.want = w.standings.boards() // the events that will be deleted don't count
	w.send(0, some("b", 10, 5)...)
	require.NoError(t, w.cluster.DeleteRecords(topic, 0, 20))

	halted := w.worker(0, nil)
	eventually(t, "it halts", func() bool { return halted.status.Line().Reason == health.HaltGap })
	require.Contains(t, halted.status.Line().What, "from offset 10 to 19")
	halted.stop(t)

	w.worker(0, func(c *Config) { c.OnGap = start.GapContinues })
	w.reaches(0)
	w.standings.do(func() {
		o, err := ledger.ParseOrigin(w.standings.origin(t, "events/0"))
		require.NoError(t, err)
		require.Equal(t, int64(20), o.Offset)
		require.InDelta(t, time.Now().UnixMilli()+300_000, o.Time, 60_000)
	})
	w.said(1, "events are gone")
}

func TestALogThatEndsBeforeThePositionIsWaitedForBeforeItHalts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	w.standings.do(func() { w.standings.stands("events/0", "11") })
	began := time.Now()
	r := w.worker(0, nil)
	eventually(t, "it waits and says why", func() bool {
		l := r.status.Line()
		return l.State == workers.StateWaiting && len(l.What) > 0
	})
	eventually(t, "it halts", func() bool { return r.status.Line().Reason == health.HaltTruncated })
	require.GreaterOrEqual(t, time.Since(began), start.ConfirmFor)
	w.send(0, some("b", 1, 5)...)
	eventually(t, "it goes on", func() bool { return r.status.Line().State == workers.StateRunning })
}

// No broker answered between two answers that showed a short log: the second may have come from a new leader
// that doesn't know the log's end yet.
func TestALogIsNotShownToBeShortWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	w.standings.do(func() { w.standings.stands("events/0", "11") })
	c := New(w.config)
	worker := c.assigned(&group.Generation{Assignments: map[string][]int{topic: {0}}}, commits.New(func(map[string]map[int]kafkaconn.Commit) error { return nil }, c.Log))[0]
	worker.locator.Short.Since = time.Now().Add(-time.Hour)
	var away atomic.Bool
	away.Store(true)
	w.cluster.ControlKey(int16(kmsg.ListOffsets), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		return nil, io.ErrUnexpectedEOF, away.Load()
	})
	_, err := worker.locator.Locate(t.Context())
	require.Error(t, err)
	away.Store(false)
	_, err = worker.locator.Locate(t.Context())
	require.ErrorContains(t, err, "ends at offset 10")
	_, halted := errors.AsType[*health.Halt](err)
	require.False(t, halted)
}

// joining makes the broker answer join requests with the given codes, one after another, and then normally.
func (w *world) joining(codes ...int16) {
	n := 0
	w.cluster.ControlKey(keyJoin, func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		if n >= len(codes) {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = codes[n]
		n++
		return resp, nil, true
	})
}

func TestAGroupWithoutACoordinatorYetIsNotWorthALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 5, 5)...)
	w.joining(15, 27)
	_, stop := w.consumer(nil)
	w.reaches(0)
	require.NoError(t, stop())
	w.said(0, "couldn't join")
}

func TestAGroupThatThisUserMayNotReadEndsTheConsumerAndSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.joining(30)
	err := New(w.config).Run(t.Context())
	require.ErrorIs(t, err, kafka.GroupAuthorizationFailed)
	require.ErrorContains(t, err, "group")
}

func TestARefusalThatIsNotSureIsWaitedOut(t *testing.T) {
	t.Parallel()
	refusal := &kafkaconn.Refusal{Broker: "b:1", What: "refuses"}
	var sure error
	c := &Consumer{Config: Config{Kafka: Kafka{Refusal: func(context.Context) error { return sure }}}}
	require.NoError(t, c.final(t.Context(), kafka.SASLAuthenticationFailed))
	sure = refusal
	require.ErrorIs(t, c.final(t.Context(), kafka.SASLAuthenticationFailed), refusal)
	require.NoError(t, c.final(t.Context(), kafka.NotCoordinatorForGroup))
	require.ErrorIs(t, c.final(t.Context(), kafka.GroupAuthorizationFailed), kafka.GroupAuthorizationFailed)
	require.ErrorIs(t, c.final(t.Context(), refusal), refusal)
}

// In order: 5 is counted and committed; Redis rolls back to 0, which is now pending; Redis returns to 5 before
// 0 is committed.
func TestWhatIsPendingIsNotCommittedOverWhereTheLedgerStands(t *testing.T) {
	w := newWorld(t, 1)
	w.send(0, some("a", 5, 5)...)
	w.commit(map[int]int64{0: 5})
	w.standings.do(func() { w.standings.stands("events/0", "5") })
	require.Equal(t, int64(5), w.end(topic, 0))
	var calls []map[string]map[int]kafkaconn.Commit
	com := commits.New(func(all map[string]map[int]kafkaconn.Commit) error { calls = append(calls, all); return nil }, w.config.Log)
	com.At(topic, 0, 0, trail.Trail{})
	worker := New(w.config).assigned(&group.Generation{Assignments: map[string][]int{topic: {0}}}, com)[0]
	at, err := worker.locator.Locate(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.AllAt(5, of), at)
	com.Flush()
	require.Len(t, calls, 1)
	require.Equal(t, int64(5), calls[0][topic][0].Offset)
}
