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

	"github.com/standings/standings/internal/ingest/duplicates"
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
	require.Len(t, w.deadLetters(), 4, "the first of each two")
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
