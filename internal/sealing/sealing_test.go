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

// place has a window of ten days ago with a member in it, on shards whose ledger is at an offset.
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
	return r
}

func (p *place) warned() int { return p.logs.FilterLevelExact(zapcore.WarnLevel).Len() }

// A Redis whose clock has jumped ahead is, to a replica whose own is right, one that is ahead of it.
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
	client := testenv.Kafka(t).Client(t)
	for range 3 {
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: p.Topics[0], Value: []byte("{}")}).FirstErr())
	}
	r := p.seal(t)
	require.Equal(t, 1, r.Due)
	require.Empty(t, r.Final)
	require.ErrorIs(t, r.Passes, ranking.ErrBehind)
}

// known are the windows that a consumer knows of each shard.
type known map[int][]ledger.Window

func (k known) Sealed(shard int) []ledger.Window { return k[shard] }
func (k known) Unsealed(shard int, windows []ledger.Window) {
	if len(windows) > 0 {
		delete(k, shard)
	}
}

func TestWhatIsReopenedOnAShardIsForgottenOfThatShard(t *testing.T) {
	p := newPlace(t, 3, 10)
	p.seal(t)
	k := known{0: {p.window}, 1: {p.window}}
	require.NoError(t, Reopened(t.Context(), p.Boards, k, p.Log))
	require.Len(t, k, 2)
	_, err := p.Boards.Shards()[1].Unseal(t.Context(), p.window.Listing(), time.Now(), "a test")
	require.NoError(t, err)
	require.NoError(t, Reopened(t.Context(), p.Boards, k, p.Log))
	require.Equal(t, known{0: {p.window}}, k)
	require.Equal(t, 1, p.logs.FilterMessage("windows that were final take events again").Len())
}
