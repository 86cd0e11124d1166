package sealing

import (
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/testenv"
)

// place has a window of ten days ago with a member in it, on shards whose ledger is at a given offset.
type place struct {
	*Sealer

	window ledger.Window
	apart  time.Duration // of the replica's clock
	logs   *observer.ObservedLogs
}

func newPlace(t *testing.T, of ledger.Shards, at int64) *place {
	t.Helper()
	k := testenv.Kafka(t)
	topic := k.Topic(t, 1, nil)
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 1_000_000)
	require.NoError(t, err)
	all := boards.New(ranking.Config{
		Client: testenv.RedisClient(t), Prefix: testenv.Prefix(t), Shards: of, Cluster: "c", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
	})
	w, err := periods.Calendar{}.At(periods.Weekly, time.Now().AddDate(0, 0, -10).UnixMilli())
	require.NoError(t, err)
	p := &place{window: ledger.Window{Board: "global", Period: "weekly", Name: w.Name, Start: w.Start, End: w.End}}
	partition := ledger.Partition{Topic: topic}
	for _, s := range all.Shards() {
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: partition, At: ledger.At(at - 1), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
		a, _, err := s.Apply(t.Context(), &ledger.Piece{Partition: partition, Expected: ledger.At(at - 1), Next: ledger.At(at), Windows: []ledger.Window{p.window},
			Groups: []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{{ID: []byte("m"), Points: 5, Time: w.Start}}}}})
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
	}
	transport := &kafka.Transport{MetadataTopics: []string{topic}}
	t.Cleanup(transport.CloseIdleConnections)
	core, logs := observer.New(zapcore.InfoLevel)
	p.logs = logs
	p.Sealer = &Sealer{
		Boards: all, Kafka: &kafka.Client{Addr: kafka.TCP(k.Addresses()...), Transport: transport, Timeout: 20 * time.Second}, Topics: []string{topic},
		Lateness: func(w ledger.Window) (time.Duration, bool) { return 24 * time.Hour, w.Period == "weekly" },
		Now:      func() time.Time { return time.Now().Add(p.apart) }, Log: zap.New(core),
	}
	return p
}

func (p *place) seal(t *testing.T) Result {
	t.Helper()
	r, err := p.Seal(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Hour, r.Next, "no window closes within an hour")
	r.Next = 0
	return r
}

func TestASealerKnowsWhenTheNextWindowCloses(t *testing.T) {
	p := newPlace(t, 3, 10)
	closes := time.Now().Add(3 * time.Second)
	p.Lateness = func(w ledger.Window) (time.Duration, bool) { return closes.Sub(time.UnixMilli(w.End)), true }
	r, err := p.Seal(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.Final)
	require.Positive(t, r.Next)
	require.LessOrEqual(t, r.Next, 3*time.Second+2*time.Millisecond)
	time.Sleep(r.Next)
	r, err = p.Seal(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{p.window.Listing()}, r.Final)
}

func (p *place) publish(t *testing.T, records int) {
	t.Helper()
	client := testenv.Kafka(t).Client(t)
	for range records {
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: p.Topics[0], Value: []byte("{}")}).FirstErr())
	}
}

// has adds a member to a window, at the place's second offset.
func (p *place) has(t *testing.T, w ledger.Window) {
	t.Helper()
	for _, s := range p.Boards.Shards() {
		a, _, err := s.Apply(t.Context(), &ledger.Piece{Partition: ledger.Partition{Topic: p.Topics[0]}, Expected: ledger.At(2), Next: ledger.At(3), Windows: []ledger.Window{w},
			Groups: []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{{ID: []byte("m"), Points: 5, Time: w.Start}}}}})
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
	}
}

// reaches moves the ledger from one offset to another.
func (p *place) reaches(t *testing.T, from, to int64) {
	t.Helper()
	for _, s := range p.Boards.Shards() {
		a, _, err := s.Apply(t.Context(), &ledger.Piece{Partition: ledger.Partition{Topic: p.Topics[0]}, Expected: ledger.At(from), Next: ledger.At(to)})
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
	}
}

func (p *place) warned() int { return p.logs.FilterLevelExact(zapcore.WarnLevel).Len() }

// If Redis's clock has jumped ahead, the replica's correct clock is behind it.
func TestAWindowIsSealedOnceItIsPastByRedissClockAndByTheReplicasOwn(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		p := newPlace(t, of, 10)
		p.apart = -14 * 24 * time.Hour
		for range 3 {
			require.Equal(t, Result{}, p.seal(t))
		}
		require.Equal(t, 1, p.warned(), "once an hour")
		require.Contains(t, p.logs.All()[0].Message, "the clocks of Redis and of this process differ")

		p.apart = 0
		require.Equal(t, Result{Final: []string{p.window.Listing()}}, p.seal(t))
		require.Equal(t, Result{}, p.seal(t))
		require.Equal(t, 1, p.warned())
		p.apart = 2 * time.Minute
		p.seal(t)
		require.Equal(t, 2, p.warned(), "anew, after they had agreed")
	}
}

func TestAReplicaWhoseClockIsAheadSealsNothingThatRedisTakesEventsFor(t *testing.T) {
	p := newPlace(t, 3, 10)
	late := 40 * 24 * time.Hour
	p.Lateness = func(ledger.Window) (time.Duration, bool) { return late, true }
	p.apart = 50 * 24 * time.Hour
	require.Equal(t, Result{}, p.seal(t))
	require.Equal(t, 1, p.warned())
}

func TestAWindowIsDueUntilTheLedgerIsPastTheLogsEnd(t *testing.T) {
	p := newPlace(t, 1, 2)
	p.publish(t, 3)
	r := p.seal(t)
	require.Equal(t, 1, r.Due)
	require.Empty(t, r.Final)
	require.ErrorIs(t, r.Passes, ranking.ErrBehind)
}

// While events keep coming the ledger never reaches the current ends of the logs.
func TestAWindowIsSealedWhileEventsComeAllTheTime(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		p := newPlace(t, of, 2)
		p.publish(t, 4)
		for at := int64(2); at < 4; at++ {
			r := p.seal(t)
			require.Equal(t, 1, r.Due)
			require.ErrorContains(t, r.Passes, "was to be at 4")
			p.publish(t, 3)
			p.reaches(t, at, at+1)
		}
		require.Equal(t, Result{Final: []string{p.window.Listing()}}, p.seal(t), "all counts that was there when it was due")
	}
}

func TestAWindowThatIsDueLaterIsSealedByTheEndsOfThen(t *testing.T) {
	p := newPlace(t, 1, 2)
	later := ledger.Window{Board: "eu", Period: "weekly", Name: p.window.Name, Start: p.window.Start, End: p.window.End}
	p.has(t, later)
	lateness := map[string]time.Duration{"eu": 40 * 24 * time.Hour}
	p.Lateness = func(w ledger.Window) (time.Duration, bool) { return lateness[w.Board], true }
	p.publish(t, 4)
	require.ErrorContains(t, p.seal(t).Passes, "was to be at 4")

	lateness["eu"] = 0
	p.publish(t, 3)
	require.ErrorContains(t, p.seal(t).Passes, "was to be at 4", "the first is waited for")
	p.reaches(t, 3, 4)
	require.Equal(t, Result{Due: 1, Final: []string{p.window.Listing()}}, p.seal(t))
	require.ErrorContains(t, p.seal(t).Passes, "was to be at 7")
	p.publish(t, 3)
	p.reaches(t, 4, 7)
	require.Equal(t, Result{Final: []string{later.Listing()}}, p.seal(t))
}

// A log that has lost its end need not reach it again.
func TestAWindowWaitsNoLongerForWhatALogHasLost(t *testing.T) {
	p := newPlace(t, 1, 2)
	p.publish(t, 3)
	require.ErrorContains(t, p.seal(t).Passes, "was to be at 3")
	p.waits.before[ledger.Partition{Topic: p.Topics[0]}] = 9
	p.waits.before[ledger.Partition{Topic: p.Topics[0], Number: 5}] = 1
	require.ErrorContains(t, p.seal(t).Passes, "was to be at 3")
	p.reaches(t, 2, 3)
	require.Equal(t, Result{Final: []string{p.window.Listing()}}, p.seal(t))
}
