package rebuild

// Restores to another number of shards than the snapshot is of.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// on has the boards be of so many shards from now on.
func (p *place) on(of ledger.Shards) {
	p.config.Shards = of
	p.live = boards.New(p.config).Shards()
	p.job.Live, p.at = p.live, int(of)/2
}

// standings are everybody's scores, by window and member, each on the shard that the member is of.
func (p *place) standings() map[string]map[string]float64 {
	p.t.Helper()
	all := map[string]map[string]float64{}
	for shard := range p.live {
		for _, name := range p.redis.HKeys(p.t.Context(), p.keyOf(shard, "windows")).Val() {
			if all[name] == nil {
				all[name] = map[string]float64{}
			}
			for _, row := range p.redis.ZRangeWithScores(p.t.Context(), p.keyOf(shard, name), 0, -1).Val() {
				member := row.Member.(string)
				require.Equal(p.t, shard, p.config.Shards.Of(xxhash.Sum64String(member)), member)
				all[name][member] = row.Score
			}
		}
	}
	return all
}

// otherShards runs a test from some numbers of shards to others: that divide each other, and that don't.
func otherShards(t *testing.T, test func(t *testing.T, from, to ledger.Shards)) {
	t.Helper()
	for _, of := range [][2]ledger.Shards{{1, 3}, {5, 1}, {5, 3}, {2, 5}} {
		t.Run(fmt.Sprint("of ", of[0], " to ", of[1]), func(t *testing.T) { test(t, of[0], of[1]) })
	}
}

func TestARestoreToAnotherNumberOfShardsIsAsExact(t *testing.T) {
	otherShards(t, func(t *testing.T, from, to ledger.Shards) {
		p, was := takenOn(t, from)
		p.on(to)
		check, err := p.job.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, check.Refused)
		require.Len(t, check.Empty, int(to))
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		p.nothingLeft()
		for shard := range p.live {
			require.Equal(t, ledger.At(p.job.Restore.reach()[topic+"/0"]).String(), p.position(shard))
		}
		s := p.stepper(9000)
		s.finish()
		require.Equal(t, was, p.standings())
	})
}

// Consumers have begun by themselves, on as many shards as there are to be.
func TestARestoreToAnotherNumberOfShardsBesideBoardsThatConsumersHaveBegun(t *testing.T) {
	otherShards(t, func(t *testing.T, from, to ledger.Shards) {
		p, was := takenOn(t, from)
		lowest, reach := p.lowest(), p.job.Restore.reach()[topic+"/0"]
		p.on(to)
		consumer := p.consumer()
		since := &ledger.Origin{Offset: lowest, Time: time.Now().UnixMilli()}
		for shard := range p.live {
			require.NoError(t, consumer.Begin(t.Context(), shard, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(lowest), Origin: since}))
		}
		s := p.stepper(reach)
		s.finish()
		s.end = 9000
		s.step()
		s.step()
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		p.nothingLeft()
		s = p.stepper(9000)
		s.finish()
		require.Equal(t, was, p.standings())
	})
}

// A window that is final in the snapshot comes back final, and takes nothing of what is read onto it.
func TestAFinalWindowComesBackFinal(t *testing.T) {
	test := func(t *testing.T, from, to ledger.Shards) {
		t.Helper()
		p := newPlaceOn(t, newPlace(t, from, 0).redis, from, 500, 40)
		was := p.standings()
		name, _ := p.final(t)
		p.job.Restore = p.snapshot(func() {})
		p.publish(300, 60)
		p.commit(800)
		p.wipe()
		p.on(to)
		_, err := p.job.Run(t.Context())
		require.NoError(t, err)
		p.nothingLeft()
		require.Equal(t, was, p.standings())
		for shard := range p.live {
			require.Equal(t, int64(3), ranking.ListedRevision(p.redis.HGet(t.Context(), p.keyOf(shard, "windows"), name).Val()))
			require.Equal(t, "3 1700000000000000", p.redis.HGet(t.Context(), p.keyOf(shard, "final"), name).Val())
			require.Equal(t, "800", p.position(shard))
		}
	}
	onShards(t, func(t *testing.T, of ledger.Shards) { test(t, of, of) })
	otherShards(t, test)
}

// What is dropped on one of the snapshot's shards was being dropped on all.
func TestWhatWasDroppedStaysSoOnAnotherNumberOfShards(t *testing.T) {
	p := newPlaceOn(t, newPlace(t, 3, 0).redis, 3, 500, 40)
	p.job.Restore = p.snapshot(func() {})
	name := p.redis.HKeys(t.Context(), p.key("windows")).Val()[0]
	p.job.Restore.Surveys[1].Beside.Dropped[name] = "4102444800000"
	p.commit(500)
	p.wipe()
	p.on(1)
	_, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, p.boards())
	require.Equal(t, map[string]string{name: "4102444800000"}, p.redis.HGetAll(t.Context(), p.key("dropped")).Val())
}

// A window was sealed on one shard as the snapshot was taken, and wasn't on the next: a shard that has
// members of both can't be both.
func TestASnapshotOfAWindowThatWasBeingSealedIsForItsOwnNumberOfShards(t *testing.T) {
	p := newPlaceOn(t, newPlace(t, 3, 0).redis, 3, 500, 40)
	was := p.standings()
	name, _ := p.final(t)
	listing := p.redis.HGet(t.Context(), p.keyOf(1, "windows"), name).Val()
	require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(1, "windows"), name, strings.Replace(listing, "=3 ", "", 1)).Err())
	p.job.Restore = p.snapshot(func() {})
	p.commit(500)
	p.wipe()
	refused := func(of ledger.Shards) {
		t.Helper()
		p.on(of)
		check, err := p.job.Check(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(check.Refused, "\n"), name+" were being sealed")
		_, err = p.job.Run(t.Context())
		require.ErrorContains(t, err, "were being sealed")
		require.Empty(t, p.redis.Keys(t.Context(), p.prefix+":*").Val())
	}
	refused(1)
	refused(2)
	delete(p.job.Restore.Surveys[1].Listings, name) // a shard that doesn't list it isn't sealed either
	refused(1)
	p.on(3)
	_, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, was, p.standings())
}

// A partition that was added while the snapshot was taken is on the pages of some shards alone. The others
// have none of its events: the log is read from where it began.
func TestAPartitionThatSomeOfTheSnapshotsShardsDontHaveIsReadFromItsBeginning(t *testing.T) {
	p, _ := takenOn(t, 2)
	added := topic + "/1"
	one, other := p.job.Restore.Surveys[0], p.job.Restore.Surveys[1]
	other.Reach[added], other.Origins[added], other.Begin.Ledger[added] = 900, "40 1700000000000", "700..900@8f3c000000000000"
	shares, err := p.job.Restore.shares(1)
	require.NoError(t, err)
	require.Equal(t, int64(40), shares[0].first[added])
	require.Equal(t, int64(900), shares[0].reach[added])
	require.Equal(t, ledger.Origin{Offset: 40, Time: 1_700_000_000_000}, shares[0].origins[added])

	one.Reach[added], one.Origins[added], one.Begin.Ledger[added] = 500, "60 1600000000000", "500"
	shares, err = p.job.Restore.shares(1)
	require.NoError(t, err)
	require.Equal(t, int64(500), shares[0].first[added])
	require.Equal(t, ledger.Origin{Offset: 60, Time: 1_700_000_000_000}, shares[0].origins[added], "complete is what both have")
	shares, err = p.job.Restore.shares(2)
	require.NoError(t, err)
	require.Equal(t, []int64{500, 700}, []int64{shares[0].first[added], shares[1].first[added]})
	require.ErrorIs(t, p.job.Restore.Pages(t.Context(), 0, func(*ranking.SnapshotPage) error { return ingest.ErrWentBack }), ingest.ErrWentBack)
}
