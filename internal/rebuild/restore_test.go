package rebuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// stepper is a consumer that goes on by a little each time, and stands anywhere then: in the middle of
// sweeps too, and shards apart.
type stepper struct {
	*place

	replay *ingest.Replay
	random *rand.Rand
	end    int64
}

func (p *place) stepper(end int64) *stepper {
	s := &stepper{p, p.consumer(), rand.New(rand.NewPCG(7, 7)), end} //nolint:gosec // a test
	require.NoError(p.t, s.replay.Refresh(p.t.Context(), ingest.AllShards))
	return s
}

func (s *stepper) step() {
	s.t.Helper()
	of := ledger.Shards(len(s.live))
	for shard := range s.live {
		at := s.replay.Position(shard, topic+"/0")
		if s.random.IntN(3) == 0 {
			continue
		}
		next := at
		low, span := of.From(shard), ^uint64(0)/uint64(of)
		switch {
		case at.Sweeping() && s.random.IntN(2) == 0:
			next = ledger.At(at.To)
		case at.Sweeping():
			if next.Hash = at.Hash + s.random.Uint64N((low+span-1-at.Hash)/2+1); next.Hash == at.Hash {
				next = ledger.At(at.To)
			}
		case at.From == s.end:
			continue
		default:
			next = ledger.At(min(s.end, at.From+1+s.random.Int64N(60)))
			if s.random.IntN(2) == 0 {
				next = ledger.Position{From: at.From, To: next.To, Hash: low + 1 + s.random.Uint64N(span-2)}
			}
		}
		require.NoError(s.t, s.replay.To(s.t.Context(), shard, map[string]ledger.Position{topic + "/0": next}), "%v to %v", at, next)
	}
}

func (s *stepper) finish() {
	s.t.Helper()
	for shard := range s.live {
		if at := s.replay.Position(shard, topic+"/0"); at.Sweeping() {
			require.NoError(s.t, s.replay.To(s.t.Context(), shard, map[string]ledger.Position{topic + "/0": ledger.At(at.To)}))
		}
	}
	require.NoError(s.t, s.replay.To(s.t.Context(), ingest.AllShards, map[string]ledger.Position{topic + "/0": ledger.At(s.end)}))
}

// snapshot takes one, and calls between after each page.
func (p *place) snapshot(between func()) *Snapshot {
	p.t.Helper()
	s := &Snapshot{Name: "20261125T120000Z-abcdefgh", Memory: 32 << 20}
	var files []*bytes.Buffer
	for shard, live := range p.live {
		sn, err := live.BeginSnapshot(p.t.Context(), time.Minute)
		require.NoError(p.t, err)
		file := new(bytes.Buffer)
		w, err := snapshot.NewWriter(file, snapshot.Head{Prefix: p.prefix, Shard: shard, Shards: len(p.live), Schema: live.Schema()}, &sn.Begin)
		require.NoError(p.t, err)
		between()
		for page, err := range sn.Pages(p.t.Context(), 0) {
			require.NoError(p.t, err)
			require.NoError(p.t, w.Page(page))
			between()
		}
		beside, err := sn.End(p.t.Context())
		require.NoError(p.t, err)
		_, err = w.End(beside)
		require.NoError(p.t, err)
		survey, err := snapshot.SurveyOf(bytes.NewReader(file.Bytes()))
		require.NoError(p.t, err)
		s.Surveys, files = append(s.Surveys, survey), append(files, file)
	}
	s.Pages = func(_ context.Context, shard int, each func(*ranking.SnapshotPage) error) error {
		return s.Surveys[shard].Pages(bytes.NewReader(files[shard].Bytes()), each)
	}
	return s
}

// wipe removes all that is under the prefix.
func (p *place) wipe() {
	p.t.Helper()
	keys, err := p.redis.Keys(p.t.Context(), p.prefix+":*").Result()
	require.NoError(p.t, err)
	if len(keys) > 0 {
		require.NoError(p.t, p.redis.Del(p.t.Context(), keys...).Err())
	}
}

// deleteBefore removes the log's events before an offset.
func (p *place) deleteBefore(at int64) {
	p.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, At: at, LeaderEpoch: -1})
	deleted, err := kadm.NewClient(p.kafka).DeleteRecords(p.t.Context(), offsets)
	require.NoError(p.t, err)
	require.NoError(p.t, deleted.Error())
}

// taken is a place that lost its Redis after a snapshot was taken while a consumer went on, and all of the
// log that the snapshot has. It returns what the boards were.
func taken(t *testing.T, of ledger.Shards) (p *place, boards map[string][]redis.Z) {
	t.Helper()
	p = takenAnd(t, of, func(p *place) { boards = p.boards() })
	return p, boards
}

// takenOn is taken, with the standings by window and member.
func takenOn(t *testing.T, of ledger.Shards) (p *place, standings map[string]map[string]float64) {
	t.Helper()
	p = takenAnd(t, of, func(p *place) { standings = p.standings() })
	return p, standings
}

func takenAnd(t *testing.T, of ledger.Shards, complete func(*place)) (p *place) {
	t.Helper()
	const before, events, members = 4000, 9000, 2500
	p = newPlaceOn(t, newPlace(t, of, 0).redis, of, before, members)
	p.send(events-before, func(i int) []byte { // of others at first, who have a row on no page, or not on every one
		return fmt.Appendf(nil, `{"user_id":"m%d","points":%d}`, (i+members)%(2*members), i)
	})
	s := p.stepper(events - 500)
	p.job.Restore = p.snapshot(s.step)
	s.step()
	s.finish()
	s.end = events
	s.finish()
	complete(p)
	p.wipe()
	p.deleteBefore(p.lowest())
	return p
}

// lowest is the offset before which all of the snapshot's first ledgers have every event.
func (p *place) lowest() int64 {
	p.t.Helper()
	lowest := int64(math.MaxInt64)
	for _, survey := range p.job.Restore.Surveys {
		at, err := first(survey, topic+"/0")
		require.NoError(p.t, err)
		lowest = min(lowest, at)
	}
	return lowest
}

func TestARestoreBringsTheBoardsBackWhereTheLogBeginsWithTheSnapshot(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p, boards := taken(t, of)
		check, err := p.job.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, check.Refused)
		require.Len(t, check.Empty, int(of))
		require.Positive(t, check.Records())
		require.Empty(t, p.redis.Keys(t.Context(), p.prefix+":*").Val(), "a check writes nothing")

		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		p.nothingLeft()
		reach := p.job.Restore.reach()[topic+"/0"]
		require.Greater(t, reach, int64(4000), "the consumer went on while the snapshot was taken")
		for shard := range p.live {
			require.Equal(t, ledger.At(reach).String(), p.position(shard))
		}
		s := p.stepper(9000)
		s.finish()
		require.Equal(t, boards, p.boards())
	})
}

// The group's offset is further than the snapshot: dead letters before it are written.
func TestARestoreReadsOnToTheOffsetOfTheGroup(t *testing.T) {
	p, boards := taken(t, 1)
	p.commit(8999)
	_, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "8999", p.position(0))
	s := p.stepper(9000)
	s.finish()
	require.Equal(t, boards, p.boards())
}

// Consumers that ran as Redis was lost have begun by themselves, with what the log has left: too little.
// The restore takes the place of that, while they go on.
func TestARestoreBesideBoardsThatConsumersHaveBegun(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p, boards := taken(t, of)
		lowest := p.lowest()
		consumer := p.consumer()
		since := &ledger.Origin{Offset: lowest, Time: time.Now().UnixMilli()}
		for shard := range p.live {
			require.NoError(t, consumer.Begin(t.Context(), shard, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(lowest), Origin: since}))
		}
		require.NotEqual(t, boards, p.boards())
		s := p.stepper(9000)
		s.step()

		old := standstill
		t.Cleanup(func() { standstill = old })
		standstill.Patience = 200 * time.Millisecond
		_, err := p.job.Run(t.Context())
		require.ErrorIs(t, err, errBehind, "nothing that is behind a page is swapped")
		p.nothingLeft()

		s.end = 8700
		s.finish()
		s.end = 9000
		s.step()
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		p.nothingLeft()
		s = p.stepper(9000)
		s.finish()
		require.Equal(t, boards, p.boards())
		st, err := p.live[0].State(t.Context())
		require.NoError(t, err)
		require.Equal(t, "0 0", strings.Join(strings.Fields(st.Origins[topic+"/0"])[1:], " ")+" 0", "they are complete again: %v", st.Origins)
	})
}

func TestARestoreIsRefusedWithWhatIsMissing(t *testing.T) {
	p, _ := taken(t, 1)
	refused := func(want string) {
		t.Helper()
		check, err := p.job.Check(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(check.Refused, "\n"), want)
		_, err = p.job.Run(t.Context())
		require.ErrorContains(t, err, want)
		require.Empty(t, p.redis.Keys(t.Context(), p.prefix+":*").Val())
	}
	survey := p.job.Restore.Surveys[0]
	schema := survey.Head.Schema
	survey.Head.Schema = strings.Replace(schema, `"zone":"UTC"`, `"zone":"Europe/Paris"`, 1)
	refused("another configuration: ")
	survey.Head.Schema = schema

	survey.Rules[topic+"/0"] = map[string]bool{"8f3c000000000001": true}
	refused("other rules")
	delete(survey.Rules, topic+"/0")

	for _, at := range []string{"17", fmt.Sprintf("torn:%d", survey.Reach[topic+"/0"]-1)} { // halted with gap, or torn: nobody brings them further
		p.begin()
		require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", at).Err())
		check, err := p.job.Check(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(check.Refused, "\n"), "the live boards are at "+at+" of events/0")
		_, err = p.job.Run(t.Context())
		require.ErrorContains(t, err, "consumer drop")
		p.wipe()
	}

	reach := survey.Reach[topic+"/0"]
	survey.Reach[topic+"/0"] = 9001
	refused("ends at offset 9000")
	survey.Reach[topic+"/0"] = reach

	p.settings.Duplicates, p.settings.DuplicatesMemory = 100, 1<<20
	refused("for event.duplicates")
	p.settings.Duplicates = 0

	p.job.Restore.Memory = 1000
	_, err := p.job.Run(t.Context())
	var room *RoomError
	require.ErrorAs(t, err, &room)
	require.Greater(t, room.Needs, int64(1000))
	require.Empty(t, p.redis.Keys(t.Context(), p.prefix+":*").Val())
	p.job.Restore.Memory = 32 << 20

	at, err := first(survey, topic+"/0")
	require.NoError(t, err)
	p.deleteBefore(at + 1)
	refused(fmt.Sprintf("begins at offset %d, and has to be read from %d", at+1, at))
}

// While a restore is under way on an empty Redis nobody begins there.
func TestAConsumerDoesNotSlipInWhileARestoreIsUnderWay(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p, boards := taken(t, of)
		begins := func(shard int) ledger.StartResult {
			begun, err := p.live[shard].Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: topic}, At: ledger.At(7000)}})
			require.NoError(t, err)
			return begun
		}
		tried := 0
		p.job.Watch.Loading = func(int64, func() int64) func() {
			for shard := range p.live {
				require.Equal(t, ledger.HeldUp, begins(shard))
			}
			tried++
			return func() { tried++ }
		}
		p.job.Watch.Planned = func(*Plan) {
			for shard := range p.live {
				require.Equal(t, ledger.HeldUp, begins(shard))
			}
			tried++
		}
		_, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, tried)
		require.Equal(t, ledger.Overtaken, begins(0))
		s := p.stepper(9000)
		s.finish()
		require.Equal(t, boards, p.boards())
	})
}

// A consumer begins just before the hold, which is taken for an empty Redis: the restore goes on beside
// what that has begun.
func TestAConsumerThatIsFasterThanTheHoldIsGoneBeside(t *testing.T) {
	p, boards := taken(t, 1)
	lowest, err := first(p.job.Restore.Surveys[0], topic+"/0")
	require.NoError(t, err)
	began := false
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		if calls(cmd, 2, p.key("hold")) && !began {
			began = true
			consumer := p.consumer()
			require.NoError(t, consumer.Begin(ctx, 0, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(lowest), Origin: &ledger.Origin{Offset: lowest, Time: time.Now().UnixMilli()}}))
			require.NoError(t, consumer.To(ctx, 0, map[string]ledger.Position{topic + "/0": ledger.At(9000)}))
		}
		return do(ctx, cmd)
	}))
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	p.nothingLeft()
	require.Equal(t, boards, p.boards())
}

// Killed at any call, a restore leaves what expires, and the next one is as good as the first.
func TestARestoreThatIsKilledAnywhereLeavesOnlyWhatExpires(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p, boards := taken(t, of)
		killed := errors.New("killed")
		var mu sync.Mutex // several shards call at once
		seen, at := 0, 0
		p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
			mu.Lock()
			seen++
			dead := at > 0 && seen >= at
			mu.Unlock()
			if dead {
				cmd.SetErr(killed)
				return killed
			}
			return do(ctx, cmd)
		}))
		old := leaveTime
		t.Cleanup(func() { leaveTime = old })
		leaveTime = 10 * time.Millisecond
		random := rand.New(rand.NewPCG(1, uint64(of))) //nolint:gosec // a test
		for next := 3; ; next += 5 + random.IntN(25) {
			mu.Lock()
			seen, at = 0, next
			mu.Unlock()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			r, err := p.job.Run(ctx)
			cancel()
			mu.Lock()
			over := at
			at = 0
			mu.Unlock()
			keys := p.redis.Keys(t.Context(), p.prefix+":*").Val()
			swapped := false
			for _, s := range r.Shards {
				swapped = swapped || s.Swapped || s.Unsure
			}
			if err == nil || swapped {
				require.Greater(t, over, 20, "it wasn't killed early")
				p.wipe()
				break
			}
			for _, key := range keys {
				if strings.HasSuffix(key, ":dropped") || strings.HasSuffix(key, ":final") {
					continue
				}
				require.Positive(t, p.redis.PTTL(t.Context(), key).Val(), "killed at call %d: %s", over, key)
			}
			p.wipe() // as if it had expired
		}
		_, err := p.job.Run(t.Context())
		require.NoError(t, err)
		s := p.stepper(9000)
		s.finish()
		require.Equal(t, boards, p.boards())
	})
}

func TestRedisThatIsLostWhileASnapshotIsLoadedEndsTheRestore(t *testing.T) {
	p, _ := taken(t, 1)
	p.job.Watch.Planned = func(*Plan) { p.wipe() }
	r, err := p.job.Run(t.Context())
	require.Error(t, err)
	require.False(t, r.Swapped)
	require.Empty(t, p.boards())
	if !errors.Is(err, shadow.ErrLost) && !errors.Is(err, ingest.ErrShadowLost) {
		t.Fatal(err)
	}
}

// What was dropped stays so, although the log has its events.
func TestADroppedBoardStaysDropped(t *testing.T) {
	p := newPlaceOn(t, newPlace(t, 1, 0).redis, 1, 500, 40)
	p.job.Restore = p.snapshot(func() {})
	name := p.redis.HKeys(t.Context(), p.key("windows")).Val()[0]
	p.job.Restore.Surveys[0].Beside.Dropped[name] = "4102444800000"
	p.publish(300, 60)
	p.commit(800)
	p.wipe()
	_, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, p.boards())
	require.Equal(t, map[string]string{name: "4102444800000"}, p.redis.HGetAll(t.Context(), p.key("dropped")).Val())
}
