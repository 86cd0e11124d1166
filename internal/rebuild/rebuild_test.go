package rebuild

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

const topic = "events"

// place is a log with some events, and live boards into which a consumer has counted them.
type place struct {
	t        testing.TB
	redis    *redis.Client
	kafka    *kgo.Client
	cluster  *kfake.Cluster
	live     []*ranking.Store // one per shard
	at       int              // the shard that a test modifies
	config   ranking.Config   // the configuration of live
	prefix   string
	job      *Job
	settings ingest.Config // of replays
	replay   func(into ...shards.Standings) *replay.Replay
	notes    []string
}

type standings struct{ *ranking.Store }

func (standings) Classify(err error) ledger.Verdict { return ranking.Classify(err) }

// onShards runs a test with one shard, and with five, of which it modifies the middle one.
func onShards(t *testing.T, test func(t *testing.T, of ledger.Shards)) {
	t.Helper()
	for _, of := range []ledger.Shards{1, 5} {
		t.Run(fmt.Sprint("of ", of), func(t *testing.T) { test(t, of) })
	}
}

func newPlace(t *testing.T, of ledger.Shards, events int) *place {
	t.Helper()
	return newPlaceOn(t, testenv.Redis(t).Client(t), of, events, 7)
}

// newPlaceOn returns a place on the given Redis, with the given number of events and members.
func newPlaceOn(t *testing.T, on *redis.Client, of ledger.Shards, events, members int) *place {
	t.Helper()
	return newPlaceOf(t, on, of, events, func(i int) []byte {
		return fmt.Appendf(nil, `{"user_id":"m%d","points":%d}`, i%members, i)
	})
}

// newPlaceOf returns a place whose log has the given events.
func newPlaceOf(t testing.TB, on *redis.Client, of ledger.Shards, events int, value func(i int) []byte) *place {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 99_999_999)
	require.NoError(t, err)
	p := &place{t: t, at: int(of) / 2, kafka: client, cluster: cluster, redis: on, prefix: "rebuild-" + strings.ToLower(rand.Text())}
	p.config = ranking.Config{
		Client: p.redis, Prefix: p.prefix, Shards: of, Cluster: "c", Calendar: calendar, Timeout: 5 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
	}
	p.live = boards.New(p.config).Shards()
	transport := &kafka.Transport{MetadataTTL: time.Second, MetadataTopics: []string{topic}}
	t.Cleanup(transport.CloseIdleConnections)
	p.settings = ingest.Config{
		Kafka: ingest.Kafka{
			Brokers: cluster.ListenAddrs(), Transport: transport, Topics: []string{topic}, Group: "group",
			FetchBytes: 64 << 10,
		},
		Timing: ingest.Timing{
			FetchWait: 100 * time.Millisecond, Timeout: 5 * time.Second,
			PieceTime: 5 * time.Millisecond,
		},
		Counting: ingest.Counting{
			Rules:     fold.BuiltIn(calendar, (24 * time.Hour).Milliseconds(), periods.Weekly),
			Retention: map[periods.Period]time.Duration{periods.Weekly: 60 * 24 * time.Hour},
			Events:    event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000},
		},
		Owner:      "test",
		FoldMemory: 44 << 20,
		Log:        zap.NewNop(),
	}
	p.replay = func(into ...shards.Standings) *replay.Replay {
		c := p.settings
		c.Standings, c.Stats = into, new(counts.Stats)
		return ingest.NewReplay(c)
	}
	p.job = &Job{
		Live: p.live, Replay: p.into, From: replay.From{From: start.FromWindow, SinceOrigin: true}, Owner: "the test",
		MaxHold: 10 * time.Second, Lease: time.Minute, Watch: Watch{Note: func(line string) { p.notes = append(p.notes, line) }},
	}
	t.Cleanup(func() {
		keys, _ := p.redis.Keys(context.Background(), p.prefix+":*").Result()
		if len(keys) > 0 { // thousands, in some tests
			_ = p.redis.Del(context.Background(), keys...).Err()
		}
	})
	if events > 0 { // a replay into the live boards replaces a consumer
		p.send(events, value)
		p.begin()
		require.NoError(t, p.consumer().To(t.Context(), replay.AllShards, map[string]ledger.Position{topic + "/0": ledger.At(int64(events))}))
	}
	return p
}

// send appends events to the log.
func (p *place) send(events int, value func(i int) []byte) {
	p.t.Helper()
	records, at := make([]*kgo.Record, events), time.Now() // all in one week, whenever it ends
	for i := range events {
		records[i] = &kgo.Record{Timestamp: at, Value: value(i)}
	}
	for some := range slices.Chunk(records, max(1, events/40)) { // several batches, so that none is cut in its middle
		require.NoError(p.t, p.kafka.ProduceSync(p.t.Context(), some...).FirstErr())
	}
}

// publish sends events of a number of members, each with as many points as there were events before it.
func (p *place) publish(events, members int) {
	p.t.Helper()
	p.send(events, func(i int) []byte { return fmt.Appendf(nil, `{"user_id":"m%d","points":%d}`, i%members, i) })
}

// begin starts the live boards at the log's first event.
func (p *place) begin() {
	p.t.Helper()
	consumer := p.consumer()
	for shard := range p.live {
		require.NoError(p.t, consumer.Begin(p.t.Context(), shard, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(0), Origin: &ledger.Origin{}}))
	}
}

// commit sets the group's offset of partition 0.
func (p *place) commit(at int64) {
	p.t.Helper()
	committed := kadm.Offsets{}
	committed.Add(kadm.Offset{Topic: topic, At: at, LeaderEpoch: -1})
	require.NoError(p.t, kadm.NewClient(p.kafka).CommitAllOffsets(p.t.Context(), "group", committed))
}

// into returns a replay into shadows.
func (p *place) into(shadows []*shadow.Store) (*replay.Replay, error) {
	var all []shards.Standings
	for _, s := range shadows {
		all = append(all, s)
	}
	return p.replay(all...), nil
}

// consumer returns a replay into the live boards.
func (p *place) consumer() *replay.Replay {
	var all []shards.Standings
	for _, s := range p.live {
		all = append(all, standings{s})
	}
	return p.replay(all...)
}

// key returns a key of the shard that the test modifies.
func (p *place) key(name string) string { return p.keyOf(p.at, name) }

func (p *place) keyOf(shard int, name string) string {
	return strings.TrimSuffix(p.live[shard].Keys().Ledger(), "ledger") + name
}

// position returns the live ledger's position of partition 0 on a shard.
func (p *place) position(shard int) string {
	return p.redis.HGet(p.t.Context(), p.keyOf(shard, "ledger"), topic+"/0").Val()
}

// boards returns the scores of the live boards, by key.
func (p *place) boards() map[string][]redis.Z {
	p.t.Helper()
	all := map[string][]redis.Z{}
	for shard := range p.live {
		for _, name := range p.redis.HKeys(p.t.Context(), p.keyOf(shard, "windows")).Val() {
			rows, err := p.redis.ZRangeWithScores(p.t.Context(), p.keyOf(shard, name), 0, -1).Result()
			require.NoError(p.t, err)
			all[p.keyOf(shard, name)] = rows
		}
	}
	return all
}

// nothingLeft requires that only the live keys exist.
func (p *place) nothingLeft() {
	p.t.Helper()
	for shard := range p.live {
		require.Empty(p.t, p.redis.Keys(p.t.Context(), p.keyOf(shard, "~*")).Val())
		require.Zero(p.t, p.redis.Exists(p.t.Context(), p.keyOf(shard, "hold")).Val())
	}
}

// hooked receives every call, and executes it.
type hooked func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error

func (hooked) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h hooked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, cmd, next) }
}
func (hooked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// calls reports whether a command runs a script with the given number of keys and the given first key.
func calls(cmd redis.Cmder, keys int, first string) bool {
	a := cmd.Args() // EVALSHA, its digest, the number of keys, the keys
	return len(a) > 3 && a[2] == keys && a[3] == first
}

// watched sees every call before it is sent; a pipeline counts as one.
type watched func(cmds ...redis.Cmder)

func (watched) DialHook(next redis.DialHook) redis.DialHook { return next }
func (w watched) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { w(cmd); return next(ctx, cmd) }
}
func (w watched) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { w(cmds...); return next(ctx, cmds) }
}

// slow is a network to Redis that delays every call.
func slow(by time.Duration) hooked {
	return func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		time.Sleep(by)
		return do(ctx, cmd)
	}
}

// has reports whether a command runs a script with the given argument.
func has(cmd redis.Cmder, text string) bool {
	return strings.HasPrefix(strings.ToLower(cmd.Name()), "eval") && slices.Contains(cmd.Args(), any(text))
}

func TestARebuildIsNeverInTimeAndLetsGoOfEverythingOnceItIsStopped(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		p.job.Compare = true // so that it holds ingestion
		was := p.boards()
		p.job.MaxHold = 400 * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		holds, beside := 0, testenv.Redis(t).Client(t) // this client is not slowed
		p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
			switch {
			case calls(cmd, 2, p.key("hold")): // the hold is taken
				if cmd.Name() == "eval" {
					break // sent again: a test of another package made the server forget its scripts
				}
				if holds++; holds > 2 {
					stop()
				}
			case beside.Exists(context.WithoutCancel(ctx), p.key("hold")).Val() == 1:
				time.Sleep(p.job.MaxHold) // every call under the hold, including a swap
			}
			return do(ctx, cmd)
		}))
		r, err := p.job.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, r.Swapped)
		require.Equal(t, 2, r.Shards[p.at].Holds)
		require.Equal(t, was, p.boards())
		p.nothingLeft()
	})
}

// A live consumer is in a sweep. The piece that brings the rebuild to the same position is executed, but
// its reply does not arrive before the hold ends. Then the consumer continues.
func TestAPieceWhoseAnswerIsLostAsTheHoldEndsIsNoLedgerThatWentBack(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 40)
		p.job.Compare = true                                                     // so that it holds ingestion
		const first, second = "0..40@7000000000000000", "0..40@9000000000000000" // also on the middle shard
		ctx := context.Background()
		require.NoError(t, p.redis.HSet(ctx, p.key("ledger"), topic+"/0", "0").Err())
		p.job.MaxHold = time.Second
		held, lost := false, 0
		p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
			// The sweep starts just before the hold, so that no earlier round sees it.
			if has(cmd, p.key("hold")) && has(cmd, p.key("~rebuild")) && !held {
				held = true
				require.NoError(t, p.redis.HSet(ctx, p.key("ledger"), topic+"/0", first).Err())
			}
			if !has(cmd, first) || lost > 0 {
				return do(ctx, cmd)
			}
			lost++
			err := do(ctx, cmd)
			require.NoError(t, err)
			require.NoError(t, p.redis.HSet(ctx, p.key("ledger"), topic+"/0", second).Err())
			time.Sleep(p.job.MaxHold)
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}))
		r, err := p.job.Run(ctx)
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, 1, lost)
		require.Greater(t, r.Holds, 1)
		require.NotContains(t, strings.Join(p.notes, "\n"), "anew")
		require.Equal(t, second, p.redis.HGet(ctx, p.key("ledger"), topic+"/0").Val())
		p.nothingLeft()
	})
}

func TestAKafkaThatIsAwayAsAPartitionIsTakenInIsWaitedFor(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		p.job.Watch.Planned = func(*Plan) {
			require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/1", "0").Err())
			for range 2 {
				p.cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
					return nil, errors.New("cut by the test"), true
				})
			}
		}
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Len(t, r.Plan.Starts, 2)
		p.nothingLeft()
	})
}

func TestATryWaitsForTheLockThatTheOneBeforeCouldNotLetGoOf(t *testing.T) {
	t.Parallel()
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		var plans, kept, asked atomic.Int64 // the renewal of the lease also calls the hook
		p.job.Watch.Planned = func(*Plan) { plans.Add(1) }
		p.job.Watch.Reading = func(int64, func() int64) func() {
			return func() {
				if plans.Load() == 1 { // as if Redis was rolled back
					require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", "7").Err())
				}
			}
		}
		p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
			lock := any(p.key("~rebuild"))
			switch a := cmd.Args(); {
			case !has(cmd, p.key("~rebuild")):
			case plans.Load() == 1 && a[2] == any(1) && len(a) == 7 && a[4] == any("release"):
				kept.Add(1)
				cmd.SetErr(io.ErrUnexpectedEOF)
				return io.ErrUnexpectedEOF
			case kept.Load() == 1 && len(a) == 7 && a[3] == lock && a[4] == any("take") && asked.Add(1) == 1: // by the next attempt
				// The lease is too long to wait for, and a shorter one could end on a busy machine.
				require.NoError(t, p.redis.PExpire(ctx, p.key("~rebuild"), 2*time.Second).Err())
			}
			return do(ctx, cmd)
		}))
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, []int64{1, 2}, []int64{kept.Load(), plans.Load()})
		require.Contains(t, strings.Join(p.notes, "\n"), "waiting for a lock of its own")
		p.nothingLeft()
	})
}

func TestWhereNoRoundIsShortTheHoldIsTriedAnyway(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	p := newPlace(t, 1, 20)
	was := p.boards()
	p.redis.AddHook(slow(160 * time.Millisecond)) // a round has at least two calls
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, was, p.boards())
	require.Len(t, p.notes, 1)
	require.Contains(t, p.notes[0], "isn't close yet")
	p.nothingLeft()
}

func TestAnothersHoldIsWaitedForWhileTheLeaseGoesOn(t *testing.T) {
	t.Parallel()
	onShards(t, func(t *testing.T, of ledger.Shards) {
		t.Parallel()
		p := newPlace(t, of, 20)
		p.job.Compare = true // so that it holds ingestion
		p.job.Lease = 5 * time.Second
		const others = 7 * time.Second // longer than the lease
		began := time.Now()
		require.NoError(t, p.redis.Set(t.Context(), p.key("hold"), "another's", others).Err())
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.GreaterOrEqual(t, time.Since(began), others)
		require.Equal(t, int(of), r.Holds)
		p.nothingLeft()
	})
}

func TestARebuildThatLosesItsLockStopsAndChangesNothing(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		was := p.boards()
		p.job.Lease = 8 * time.Second
		require.NoError(t, p.redis.Set(t.Context(), p.key("hold"), "another's", time.Minute).Err())
		p.job.Watch.Planned = func(*Plan) { // by then it has the lock
			require.NoError(t, p.redis.Set(t.Context(), p.key("~rebuild"), `{"token":"another"}`, time.Minute).Err())
		}
		_, err := p.job.Run(t.Context())
		require.ErrorIs(t, err, shadow.ErrLost)
		require.Equal(t, was, p.boards())
		require.Equal(t, []string{p.key("~rebuild")}, p.redis.Keys(t.Context(), p.key("~*")).Val(), "another's lock is another's")
		require.Equal(t, "another's", p.redis.Get(t.Context(), p.key("hold")).Val())
	})
}

func TestALedgerThatGoesBackHasItBeginAnewAndNotForEver(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		plans := 0
		p.job.Watch.Planned = func(*Plan) {
			plans++
			// As if Redis was rolled back in each attempt: the shadow began at 0 and cannot be there again.
			require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", "20").Err())
		}
		p.job.Watch.Reading = func(int64, func() int64) func() {
			return func() { // once it has read up to 20
				require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", "7").Err())
			}
		}
		_, err := p.job.Run(t.Context())
		require.ErrorIs(t, err, replay.ErrWentBack)
		require.Equal(t, tries, plans)
		require.Len(t, p.notes, tries-1)
		require.Contains(t, p.notes[0], "beginning anew")
		p.nothingLeft()
	})
}

func TestAListingThatIsLostIsRebuilt(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		was := p.boards()
		require.NotEmpty(t, was)
		require.NoError(t, p.redis.Del(t.Context(), p.key("windows")).Err())
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, was, p.boards())
		p.nothingLeft()
	})
}

// The remedy that the halt of the consumers names.
func TestALedgerThatSaysNothingIsRebuiltOnceItIsDeleted(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		for name, spoil := range map[string]func(p *place) error{
			"no schema":  func(p *place) error { return p.redis.Del(p.t.Context(), p.key("schema")).Err() },
			"unreadable": func(p *place) error { return p.redis.HSet(p.t.Context(), p.key("ledger"), topic+"/0", "abc").Err() },
		} {
			t.Run(name, func(t *testing.T) {
				p := newPlace(t, of, 20)
				was := p.boards()
				p.commit(20)
				require.NoError(t, spoil(p))
				r, err := p.job.Run(t.Context())
				require.Error(t, err)
				require.False(t, r.Swapped)
				require.Equal(t, was, p.boards())
				require.NoError(t, p.redis.Del(t.Context(), p.key("ledger")).Err())
				r, err = p.job.Run(t.Context())
				require.NoError(t, err)
				require.True(t, r.Swapped)
				require.Equal(t, was, p.boards())
				p.nothingLeft()
			})
		}
	})
}

func TestAPartitionThatIsAddedWhileAFileOfOffsetsIsReadBeginsWhereItsLogDoes(t *testing.T) {
	t.Parallel()
	onShards(t, func(t *testing.T, of ledger.Shards) {
		t.Parallel()
		p := newPlace(t, of, 20)
		p.job.From = replay.From{Offsets: map[string]int64{topic + "/0": 0}}
		p.job.Watch.Planned = func(*Plan) {
			require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/1", "0").Err())
		}
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, map[string]string{topic + "/0": "20", topic + "/1": "0"}, p.redis.HGetAll(t.Context(), p.key("ledger")).Val())

		// A partition that exists from the start needs an offset, and a partition that Kafka does not have
		// is reported.
		_, err = p.job.Run(t.Context())
		require.ErrorContains(t, err, "no offset is given for "+topic+"/1")
		p.job.From = replay.From{From: start.FromEarliest}
		require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/2", "0").Err())
		_, err = p.job.Run(t.Context())
		require.ErrorContains(t, err, "Kafka has only 2 partitions of "+topic+": its events can't be read again")
		p.nothingLeft()
	})
}

func TestABoardThatNeitherIsListedNorInTheLogIsAnError(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		was := p.boards()
		p.job.Choice.Boards = []string{"global", "golbal"}
		r, err := p.job.Run(t.Context())
		require.ErrorContains(t, err, "no window is of the board golbal")
		require.False(t, r.Swapped)
		require.Zero(t, r.Holds)
		require.Len(t, p.notes, 1)
		require.Equal(t, was, p.boards())
		p.nothingLeft()

		// A board that only the log has is rebuilt.
		for key := range was {
			require.NoError(t, p.redis.Del(t.Context(), key).Err())
		}
		for shard := range p.live {
			require.NoError(t, p.redis.Del(t.Context(), p.keyOf(shard, "windows")).Err())
		}
		p.job.Choice.Boards = []string{"global"}
		r, err = p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, was, p.boards())
	})
}
