package ingest

// This file tests duplicates end to end, from the log to the boards, with readers that start at any offset.

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

// named is an event with an id.
type named struct {
	ID string `json:"event_id,omitempty"`
	earned
}

// naming holds the events of partition 0 so far, and their offsets.
type naming struct {
	*world

	back  int64
	next  int64
	valid []placed
	found int64 // duplicates
}

type placed struct {
	offset   int64
	id, user string
}

func newNaming(t *testing.T, back int64) *naming {
	t.Helper()
	w := newWorld(t, 1)
	w.config.Duplicates = back
	return &naming{world: w, back: back}
}

// repeats is the definition of a duplicate: a valid event with the same ids is at most back offsets earlier.
func (w *naming) repeats(e named) bool {
	for _, v := range slices.Backward(w.valid) {
		if v.offset < w.next-w.back {
			break
		}
		if e.ID != "" && v.id == e.ID && v.user == e.User {
			return true
		}
	}
	return false
}

// publish sends events, and expects those that aren't duplicates to count.
func (w *naming) publish(all ...named) {
	w.t.Helper()
	var records []*kgo.Record
	for _, e := range all {
		if w.repeats(e) {
			w.found++
		} else {
			w.counts(e.earned)
		}
		w.valid = append(w.valid, placed{w.next, e.ID, e.User})
		w.next++
		value, err := json.Marshal(e)
		require.NoError(w.t, err)
		records = append(records, &kgo.Record{Value: value})
	}
	require.NoError(w.t, w.client.ProduceSync(context.Background(), records...).FirstErr())
}

// bad sends an invalid value, or a tombstone.
func (w *naming) bad(value []byte) {
	w.t.Helper()
	w.sendRaw(0, value)
	w.next++
}

func (w *naming) event(id string, member string) named {
	return named{id, earned{User: member, Points: 5, At: time.Now().Add(-time.Minute).UnixMilli()}}
}

// random returns events of a number of members, with few different ids; some have no id.
func (w *naming) random(r *rand.Rand, n, members, ids int) (all []named) {
	for range n {
		e := w.event("", "m"+strconv.Itoa(r.IntN(members)))
		if id := r.IntN(ids + 1); id > 0 {
			e.ID = "e" + strconv.Itoa(id)
		}
		e.Points = 1 + int64(r.IntN(9))
		all = append(all, e)
	}
	return all
}

func TestAnEventIsADuplicateOfOneThatIsSoManyOffsetsBeforeAndNoFurther(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 4)
	w.worker(0, nil)
	a, b := w.event("a", "u1"), w.event("b", "u1")
	w.publish(a, a, w.event("a", "u2"), b, w.event("", "u1"), w.event("", "u1"))
	require.Equal(t, int64(1), w.found)
	w.publish(a) // five offsets after the last one
	require.Equal(t, int64(1), w.found)
	w.bad([]byte(`{"event_id":"c","user_id":"u1","points":"many"}`))
	w.bad(nil)
	w.publish(w.event("c", "u1"), w.event("c", "u1"), a)
	require.Equal(t, int64(2), w.found)
	w.reaches(0)
	w.counted(w.next)
	c := w.stats.Count()
	require.Equal(t, w.found, c.Duplicates)
	require.Equal(t, int64(1), c.Skipped)
	require.Len(t, w.deadLetters(0), 1)
}

func TestWithoutTheSettingEveryRepeatCounts(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 0)
	w.worker(0, nil)
	w.publish(w.event("a", "u1"), w.event("a", "u1"), w.event("a", "u1"))
	w.reaches(0)
	require.Zero(t, w.found)
	require.Zero(t, w.stats.Duplicates.Load())
}

// A late event is no dead letter, and its repetition is a duplicate. Neither counts, whichever was published
// first.
func TestARepeatOfALateEventIsADuplicate(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 10)
	w.worker(0, nil)
	late := w.event("a", "u1")
	late.At = time.Now().AddDate(-3, 0, 0).UnixMilli()
	value, err := json.Marshal(late)
	require.NoError(t, err)
	w.bad(value)
	w.bad(value)
	w.reaches(0)
	w.counted(2)
	require.Equal(t, int64(1), w.stats.Late.Load())
	require.Equal(t, int64(1), w.stats.Duplicates.Load())
}

// A worker that takes over a sweep reads it from its start, and looks through the records before that start,
// not only before the position where it continues.
func TestADuplicateIsFoundAcrossATakeover(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(strconv.Itoa(int(seed)), func(t *testing.T) {
			t.Parallel()
			w := newNaming(t, 300)
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
			calls, stopAt := 0, 1+r.IntN(3)
			var current *running
			halted := make(chan struct{}, 1000)
			w.standings.apply = func(int, *ledger.Piece) reply {
				w.standings.mu.Lock()
				defer w.standings.mu.Unlock()
				if calls++; calls%stopAt == 0 && current != nil {
					current.cancel(errGenerationEnded)
					halted <- struct{}{}
				}
				return reply{executed: true}
			}
			events := int64(0)
			for range 4 {
				w.publish(w.random(r, 1500, 1000, 3)...)
				events += 1500
			}
			end := strconv.FormatInt(w.end(topic, 0), 10)
			for rounds := 0; w.standings.at(0) != end; rounds++ {
				require.Less(t, rounds, 200)
				first := w.worker(0, nil)
				w.standings.do(func() { current = first })
				select {
				case <-halted:
				case <-time.After(500 * time.Millisecond):
					if w.standings.at(0) == end {
						w.standings.do(func() { current = nil })
					}
				}
				first.stop(t)
			}
			require.Positive(t, w.found)
			w.reaches(0)
		})
	}
}

// After a rollback of Redis the log is read again, and the records before the new position are looked through
// again.
func TestADuplicateIsFoundAfterARollback(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 50)
	w.worker(0, nil)
	r := rand.New(rand.NewPCG(3, 1)) //nolint:gosec // a test's
	w.publish(w.random(r, 100, 5, 10)...)
	w.reaches(0)
	restore := w.standings.snapshot()
	w.publish(w.random(r, 200, 5, 10)...)
	w.reaches(0)
	restore()
	w.reaches(0)
	w.publish(w.random(r, 30, 5, 10)...)
	w.reaches(0)
	require.Positive(t, w.found)
	require.GreaterOrEqual(t, w.logged("looked through records for duplicates"), 2)
}

func TestAReplayFindsTheSameDuplicatesFromWhereverItBegins(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 40)
	r := rand.New(rand.NewPCG(4, 1)) //nolint:gosec // a test's
	w.publish(w.random(r, 400, 5, 10)...)
	w.worker(0, nil)
	w.reaches(0)
	for _, from := range []int64{0, 1, 39, 40, 41, 200} {
		shadow := newFake()
		cfg := w.config
		cfg.Standings, cfg.Stats = shadow.standings(), new(counts.Stats)
		again := NewReplay(cfg)
		for shard := range int(of) {
			require.NoError(t, again.Begin(t.Context(), shard, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(from)}))
		}
		require.NoError(t, again.To(t.Context(), replay.AllShards, map[string]ledger.Position{field(0): ledger.At(w.next)}))
		want := w.duplicatesFrom(from)
		require.Equal(t, want, cfg.Stats.Duplicates.Load(), "from %d", from)
		if from == 0 {
			require.Empty(t, differences(w.want, shadow.boards()))
		}
	}
}

// duplicatesFrom returns how many of the events from an offset on are duplicates.
func (w *naming) duplicatesFrom(from int64) (n int64) {
	for i, e := range w.valid {
		if e.offset < from || e.id == "" {
			continue
		}
		for _, v := range w.valid[:i] {
			if v.id == e.id && v.user == e.user && v.offset >= e.offset-w.back {
				n++
				break
			}
		}
	}
	return n
}

// The events of a refused member that are duplicates don't become dead letters: only those that would have
// counted do.
func TestOfAMemberWhoIsRefusedDuplicatesAreNoDeadLetters(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 100)
	w.standings.limit = 12
	var all []named
	for i := range 8 {
		e := w.event("e"+strconv.Itoa(i/2), "greedy")
		all = append(all, e, w.event("x", "m"+strconv.Itoa(i/2)))
	}
	records := make([]*kgo.Record, len(all))
	for i, e := range all {
		value, err := json.Marshal(e)
		require.NoError(t, err)
		records[i] = &kgo.Record{Value: value}
		if e.User != "greedy" && i%4 == 1 {
			w.counts(e.earned)
		}
	}
	require.NoError(t, w.client.ProduceSync(t.Context(), records...).FirstErr())
	w.worker(0, nil)
	w.reaches(0)
	w.counted(16)
	require.Equal(t, int64(8), w.stats.Duplicates.Load())
	require.Len(t, w.deadLetters(0), 4, "the first of each two")
}

// If memory is short, a sweep is read several times, each time from its start.
func TestDuplicatesAreFoundInEveryReadingOfASweep(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 500)
	w.config.FoldMemory = 8 << 20
	const members = 30_000
	r := rand.New(rand.NewPCG(5, 1)) //nolint:gosec // a test's
	w.publish(w.random(r, 200, 30, 5)...)
	var all []named
	for i := range members {
		e := w.event("one", fmt.Sprintf("member-%06d-of-a-name-that-takes-its-room", i))
		if all = append(all, e); i%10 == 0 {
			all = append(all, e)
		}
		if len(all) > 5000 {
			w.publishFresh(all)
			all = all[:0]
		}
	}
	w.publishFresh(all)
	// The position that an owner left after it had swept up to a hash.
	end := w.next
	w.standings.do(func() {
		at := ledger.Position{From: 100, To: end, Hash: 1 << 40}
		w.standings.stands(field(0), at.String())
	})
	w.want = board{}
	w.worker(0, nil)
	eventually(t, "the sweep is through", func() bool { return w.standings.at(0) == strconv.FormatInt(end, 10) })
	w.standings.do(func() {
		for listing, members := range w.standings.boards() {
			for m, got := range members {
				if len(m) > 10 {
					require.Equal(t, int64(5), got.points, "%s %s", listing, m)
				}
			}
		}
	})
	require.Greater(t, w.logged("looked through records for duplicates"), 2, "it was read once")
}

// publishFresh sends events of which only neighbors have equal ids.
func (w *naming) publishFresh(all []named) {
	w.t.Helper()
	records := make([]*kgo.Record, len(all))
	for i, e := range all {
		value, err := json.Marshal(e)
		require.NoError(w.t, err)
		records[i] = &kgo.Record{Value: value}
	}
	w.next += int64(len(all))
	require.NoError(w.t, w.client.ProduceSync(context.Background(), records...).FirstErr())
}

// The record of an aborted transaction counts as absent: an event that repeats it counts.
func TestAnAbortedEventIsNoOriginal(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 20)
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.DefaultProduceTopic(topic), kgo.TransactionalID("tx"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer c.Close()
	e := w.event("a", "u1")
	value, err := json.Marshal(e)
	require.NoError(t, err)
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryCommit} {
		require.NoError(t, c.BeginTransaction())
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Value: value}).FirstErr())
		require.NoError(t, c.EndTransaction(t.Context(), end))
	}
	w.counts(e.earned)
	first := w.worker(0, nil)
	w.reaches(0)
	w.counted(2)
	require.Equal(t, int64(1), w.stats.Duplicates.Load())
	first.stop(t)
	// A later worker that looks through the record gets the same result.
	w.worker(0, nil)
	w.sendRaw(0, value)
	w.reaches(0)
	w.counted(3)
	require.Equal(t, int64(2), w.stats.Duplicates.Load())
}

// Records that were deleted before they could be looked through are unknown: events that repeat them count, and
// a warning is logged.
func TestARepeatOfWhatIsGoneFromTheLogCountsAndThatIsSaid(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 20)
	a, b := w.event("a", "u1"), w.event("b", "u1")
	w.publish(a, b)
	first := w.worker(0, nil)
	w.reaches(0)
	first.stop(t)
	w.truncate(1)
	w.valid = w.valid[1:]
	w.publish(a, b)
	w.worker(0, nil)
	w.reaches(0)
	require.Equal(t, int64(1), w.found)
	w.said(1, "Kafka has deleted records that would be looked through for duplicates")
}

func TestWhatIsRememberedIsShown(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 100)
	w.publish(w.event("a", "u1"), w.event("b", "u1"))
	worker := w.worker(0, nil)
	w.reaches(0)
	l := worker.status.Line()
	require.Equal(t, int64(100), l.Duplicates)
	require.WithinDuration(t, time.Now(), l.DuplicatesSince, time.Minute)
}

// However readings are interrupted and wherever the next one starts, the known ids suffice.
func TestWhatIsKnownIsEnoughWhereverAReadingBegins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		back := rapid.Int64Range(1, 15).Draw(t, "back")
		log := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 120).Draw(t, "log")
		id := func(o int64) duplicates.ID { return duplicates.Of([]byte{byte(log[o])}, []byte("u")) }
		repeats := func(o, start int64) bool {
			for before := max(start, o-back); before < o; before++ {
				if log[before] == log[o] {
					return true
				}
			}
			return false
		}
		l := &lookBack{records: back, set: duplicates.New(back)}
		start, end := int64(0), int64(len(log))
		for range rapid.IntRange(1, 12).Draw(t, "readings") {
			next := rapid.Int64Range(start, end).Draw(t, "from")
			if !l.whole || l.set.Next() != next {
				o := l.begin(min(max(next-back, start), next), next)
				stop := rapid.SampledFrom([]int64{next, next, rapid.Int64Range(o, next).Draw(t, "broken off")}).Draw(t, "looked to")
				for ; o < stop; o++ {
					l.set.Add(o, id(o))
				}
				if stop < next {
					continue
				}
				l.set.Pass(next)
				l.whole = true
			}
			for o := next; o < min(end, next+rapid.Int64Range(0, 20).Draw(t, "read")); o++ {
				found := l.set.Has(o, id(o))
				l.set.Add(o, id(o))
				// Deleted records may be known from before.
				require.True(t, found == repeats(o, 0) || found == repeats(o, start), "at %d: %v", o, found)
			}
			if rapid.IntRange(0, 5).Draw(t, "deleted") == 0 {
				start = rapid.Int64Range(start, end).Draw(t, "log start")
			}
		}
	})
}

// A first start also looks through the records before it, so that it finds the same duplicates as every other
// reading.
func TestAStartFindsTheDuplicatesOfWhatIsBeforeIt(t *testing.T) {
	t.Parallel()
	w := newNaming(t, 20)
	e := w.event("a", "u1")
	w.publish(e)
	w.want = board{}
	w.worker(0, func(c *Config) { c.Start = start.Where{From: start.FromLatest} })
	eventually(t, "it has begun", func() bool { return w.standings.at(0) == "1" })
	w.publish(e, w.event("b", "u1"))
	w.reaches(0)
	w.counted(2)
	require.Equal(t, int64(1), w.stats.Duplicates.Load())
}
