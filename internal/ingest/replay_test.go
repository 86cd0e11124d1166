package ingest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

// moment is the content of the live standings at one moment.
type moment struct {
	ledgers []map[string]string
	boards  board
}

// replay returns a replay of all partitions, and its shadow. All partitions have begun.
func (w *world) replay(partitions int, change func(*Config)) (*replay.Replay, *fake) {
	w.t.Helper()
	shadow := newFake()
	cfg := w.config
	cfg.Standings, cfg.Stats = shadow.standings(), new(counts.Stats)
	if change != nil {
		change(&cfg)
	}
	r, c := newReplay(cfg)
	w.replays = c
	for p := range partitions {
		w.begins(r, shadow, ledger.StartPosition{Partition: ledger.Partition{Topic: topic, Number: p}, At: ledger.At(0), Origin: &ledger.Origin{}})
	}
	return r, shadow
}

// begins starts a partition in all shards of the shadow.
func (w *world) begins(r *replay.Replay, shadow *fake, at ledger.StartPosition) {
	w.t.Helper()
	for shard := range shadow.shards {
		require.NoError(w.t, r.Begin(w.t.Context(), shard, at))
	}
}

// to moves partition 0 to its position in each shard of a shadow, one shard after another.
func to(ctx context.Context, r *replay.Replay, all ledger.Positions) error {
	for shard, at := range all {
		if err := r.To(ctx, shard, map[string]ledger.Position{"events/0": at}); err != nil {
			return err
		}
	}
	return nil
}

// toAll does the same for one position, which it maps to the shards' ranges.
func toAll(ctx context.Context, r *replay.Replay, at ledger.Position) error {
	return to(ctx, r, spread(at, of))
}

func limitsOf(t testing.TB, texts map[string]string) map[string]ledger.Position {
	t.Helper()
	all := map[string]ledger.Position{}
	for field, text := range texts {
		at, err := ledger.Counted(text)
		require.NoError(t, err)
		all[field] = at
	}
	return all
}

// lowestOfAll returns the offsets that every shard has reached.
func lowestOfAll(t testing.TB, ledgers []map[string]string) map[string]ledger.Position {
	t.Helper()
	all := limitsOf(t, ledgers[0])
	for _, texts := range ledgers {
		for field, at := range limitsOf(t, texts) {
			all[field] = ledger.At(min(all[field].From, at.From))
		}
	}
	return all
}

// moments makes consumers count random events in small pieces, and returns some intermediate contents of their
// standings, in order.
func (w *world) moments(seed uint64, partitions int) []moment {
	w.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	for p := range partitions {
		var all []earned
		for range 3000 {
			all = append(all, earned{
				User: "u" + strconv.Itoa(random.IntN(1000)), Points: random.Int64N(100) - 20,
				At: time.Now().Add(-time.Duration(random.Int64N(int64(20 * 24 * time.Hour)))).UnixMilli(), Board: []string{"", "eu"}[random.IntN(2)],
			})
		}
		for some := range slices.Chunk(all, 700) {
			w.send(p, some...)
			w.sendRaw(p, []byte("bad"), nil)
		}
	}
	var kept []moment
	keep := func() {
		kept = append(kept, moment{ledgers: w.standings.ledgers(), boards: w.standings.boards()})
	}
	w.standings.apply = func(int, *ledger.Piece) reply {
		w.standings.do(func() {
			if random.IntN(10) == 0 {
				keep()
			}
		})
		return reply{}
	}
	for p := range partitions { // one after another, so that the moments are in order
		r := w.worker(p, func(c *Config) { c.PieceTime = 1 })
		end := strconv.FormatInt(w.end(topic, p), 10)
		eventually(w.t, "the partition is through", func() bool { return w.standings.at(p) == end })
		r.stop(w.t)
	}
	w.standings.do(keep)
	return kept
}

func TestAReplayComesToTheVeryBoardsThatALiveLedgerDenotes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			moments := w.moments(seed, 2)
			sweeps := 0
			r, shadow := w.replay(2, func(c *Config) { c.PieceTime = 1 })
			deadLetters := w.end(event.DeadLetterTopic(topic), 0) + w.end(event.DeadLetterTopic(topic), 1)
			for i, m := range moments {
				if i%3 != int(seed)%3 && i != len(moments)-1 {
					continue
				}
				if of > 1 && i%2 == 0 { // first to the lowest position, in one reading for all shards
					require.NoError(t, r.To(t.Context(), replay.AllShards, lowestOfAll(t, m.ledgers)))
				}
				for shard, texts := range m.ledgers {
					limits := limitsOf(t, texts)
					require.Len(t, limits, 2)
					require.NoError(t, r.To(t.Context(), shard, limits))
					for field, at := range limits {
						require.Equal(t, texts[field], shadow.shards[shard].ledger[field])
						require.Equal(t, at, r.Position(shard, field))
						if at.Sweeping() {
							sweeps++
						}
					}
				}
				require.Empty(t, differences(m.boards, shadow.boards()), "at %v", m.ledgers)
			}
			require.Positive(t, sweeps, "some lay in the middle of a sweep")
			require.Equal(t, deadLetters, w.end(event.DeadLetterTopic(topic), 0)+w.end(event.DeadLetterTopic(topic), 1), "a replay writes no dead letters")
			require.Zero(t, r.Stats().DeadLetters.Load())
			eventually(t, "all memory is given back", func() bool { return w.replays.Budget.Used() == 0 })
		})
	}
}

func TestAPositionOnlyLeadsToThoseThatASweepCanComeTo(t *testing.T) {
	sweep := func(from, to int64, hash uint64) ledger.Position {
		return ledger.Position{From: from, To: to, Hash: hash}
	}
	for _, c := range []struct {
		from, to ledger.Position
		leads    bool
	}{
		{ledger.At(5), ledger.At(5), true},
		{ledger.At(5), ledger.At(6), true},
		{ledger.At(6), ledger.At(5), false},
		{ledger.At(5), sweep(5, 9, 1), true},
		{ledger.At(6), sweep(5, 9, 1), false},
		{ledger.At(4), sweep(5, 9, 1), true},
		{sweep(5, 9, 3), sweep(5, 9, 3), true},
		{sweep(5, 9, 3), sweep(5, 9, 4), true},
		{sweep(5, 9, 3), sweep(5, 9, 2), false},
		{sweep(5, 9, 3), sweep(5, 8, 4), false},
		{sweep(5, 9, 3), ledger.At(5), false},
		{sweep(5, 9, 3), ledger.At(8), false},
		{sweep(5, 9, 3), ledger.At(9), true},
		{sweep(5, 9, 3), sweep(9, 12, 1), true},
	} {
		require.Equal(t, c.leads, replay.Leads(c.from, c.to), "%v to %v", c.from, c.to)
	}
}

func TestAReplayThatIsPastItsEndSaysThatTheLiveLedgerWentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("m", 20, 1)...)
	r, shadow := w.replay(1, nil)
	// In the middle of a record batch.
	require.NoError(t, toAll(t.Context(), r, ledger.At(15)))
	require.Equal(t, "15", shadow.at(0))
	weekly := 0 // in one week or, around midnight before a Monday, in two
	for listing, members := range shadow.boards() {
		if strings.HasPrefix(listing, "global:weekly:") {
			weekly += len(members)
		}
	}
	require.Equal(t, 15, weekly)
	for shard := range shadow.shards {
		require.ErrorIs(t, r.To(t.Context(), shard, map[string]ledger.Position{"events/0": ledger.At(14)}), replay.ErrWentBack)
	}
}

func TestAReplayWhoseShadowIsGoneEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("m", 2000, 1)...)
	r, shadow := w.replay(1, func(c *Config) { c.PieceTime = 1 })
	shadow.apply = func(n int, _ *ledger.Piece) reply {
		if n == 3 {
			shadow.wipe()
		}
		return reply{}
	}
	require.ErrorIs(t, toAll(t.Context(), r, ledger.At(2000)), replay.ErrShadowLost)
}

func TestAReplayOfWhatTheLogNoLongerHasSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("m", 20, 1)...)
	r, _ := w.replay(1, nil)
	w.truncate(10)
	require.ErrorIs(t, toAll(t.Context(), r, ledger.At(20)), replay.ErrLogMoved)
}

func TestAReplayOfALogThatEndsTooEarlyHalts(t *testing.T) {
	if testing.Short() {
		t.Log("waits as long as a leader may take to know its end")
	}
	t.Parallel()
	for name, until := range map[string]ledger.Position{
		"an offset":             ledger.At(25),
		"the middle of a sweep": {From: 0, To: 25, Hash: 1 << 63},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.send(0, some("m", 20, 1)...)
			r, _ := w.replay(1, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 6*start.ConfirmFor)
			defer cancel()
			shard := of.Of(until.Hash)
			err := r.To(ctx, shard, map[string]ledger.Position{"events/0": until})
			var halt *health.Halt
			require.ErrorAs(t, err, &halt)
			require.Equal(t, health.HaltTruncated, halt.Reason)
			require.Contains(t, halt.What, "events/0 ends at offset 20, before the ledger's position "+until.String())
		})
	}
}

func (w *world) truncate(offset int64) {
	w.t.Helper()
	require.NoError(w.t, w.cluster.DeleteRecords(topic, 0, offset))
}

// If the replay omitted its events, boards that have them would lose them.
func TestAReplayThatIsRefusedAWindowEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	all := some("a", 50, 5) // so many that every shard has members
	all[7].Board = "eu"
	w.send(0, all...)
	r, shadow := w.replay(1, nil)
	shadow.windows = 1
	for shard := range shadow.shards {
		err := r.To(t.Context(), shard, map[string]ledger.Position{"events/0": ledger.At(50)})
		require.ErrorContains(t, err, topic+"/0: a shadow takes windows without limit, and ")
	}
	require.Equal(t, "0", shadow.at(0))
}
