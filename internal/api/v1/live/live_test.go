package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is a state that a test changes.
type board struct {
	reads atomic.Int64

	mu     sync.Mutex // guards the fields below, which the test changes
	of     string
	beside string
	rows   map[string]int
	fails  error
}

func (b *board) read(context.Context) (State, error) {
	b.reads.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return State{}, b.fails
	}
	head := fmt.Appendf(nil, `{"of":%q,"beside":%q,"at":%q`, b.of, b.beside, time.Now().UTC().Format(time.TimeOnly))
	s := State{Of: b.of, Beside: b.beside, Snapshot: head, Change: head}
	for _, member := range slices.Sorted(maps.Keys(b.rows)) {
		s.Rows = append(s.Rows, Row{member, fmt.Appendf(nil, `{"member":%q,"points":%d}`, member, b.rows[member])})
	}
	return s, nil
}

// change changes the board, possibly during a read.
func (b *board) change(how func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	how()
}

// client is the state of a client that receives events.
type client struct {
	*Watch
	t    *testing.T
	rows map[string]int
	at   string
}

// take takes the next event and returns its name.
func (c *client) take() string {
	c.t.Helper()
	e, _ := c.Take()
	if e == nil {
		return ""
	}
	text := slices.Concat(e.Head, e.Rest)
	if e.Name == Problem {
		return Problem + " " + string(text)
	}
	var data struct {
		At        string
		Removed   []string
		Standings []struct {
			Member string
			Points int
		}
	}
	require.NoError(c.t, json.Unmarshal(text, &data), "%s", text)
	if e.Name == Snapshot {
		c.rows = map[string]int{}
	}
	for _, member := range data.Removed {
		require.Contains(c.t, c.rows, member)
		delete(c.rows, member)
	}
	for _, s := range data.Standings {
		points, ok := c.rows[s.Member]
		require.False(c.t, ok && points == s.Points, "%s is sent and hasn't changed: %s", s.Member, text)
		c.rows[s.Member] = s.Points
	}
	c.at = data.At
	return e.Name
}

// hub runs a test with a hub in simulated time.
func hub(t *testing.T, sources int, do func(t *testing.T, h *Hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Sources: sources, Counted: func() {}, Problem: func(err error) []byte { return []byte(err.Error()) }})
		defer h.Wait()
		defer h.End()
		do(t, h)
	})
}

func (b *board) watch(t *testing.T, h *Hub, every time.Duration) *client {
	t.Helper()
	w, err := h.Watch(b, "client", every, b.read)
	require.NoError(t, err)
	return &client{Watch: w, t: t, rows: map[string]int{}}
}

func TestASourceIsReadAsOftenAsTheOneWhoWantsMost(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		b := &board{}
		reads := func(over time.Duration) int64 {
			synctest.Wait()
			before := b.reads.Load()
			time.Sleep(over)
			synctest.Wait()
			return b.reads.Load() - before
		}
		slow := b.watch(t, h, time.Minute)
		require.Equal(t, int64(10), reads(10*time.Second), "at least once a second")
		time.Sleep(500 * time.Millisecond)
		quick := b.watch(t, h, 100*time.Millisecond)
		require.Equal(t, int64(10), reads(time.Second), "at once, and not when the slow one's second is over")
		same := b.watch(t, h, 100*time.Millisecond)
		quick.Leave()
		quick.Leave() // the second call has no effect
		require.Equal(t, int64(10), reads(time.Second))
		same.Leave()
		require.LessOrEqual(t, reads(10*time.Second), int64(11))
		slow.Leave()
		require.Zero(t, reads(time.Minute), "nobody watches")
		require.Zero(t, h.Len())
	})
}

func TestManySourcesAreReadLessOften(t *testing.T) {
	hub(t, 1000, func(t *testing.T, h *Hub) {
		var all [400]board
		for i := range all {
			all[i].watch(t, h, 100*time.Millisecond)
		}
		time.Sleep(time.Second)
		before := int64(0)
		for i := range all {
			before -= all[i].reads.Load()
		}
		time.Sleep(10 * time.Second)
		for i := range all {
			before += all[i].reads.Load()
		}
		require.InDelta(t, 10_000, before, 500)
	})
}

// After a Take, a client has the latest rows, however much has happened since its last one.
func TestWhoeverTakesHasWhatIsThere(t *testing.T) {
	for seed := range uint64(10) {
		hub(t, 10, func(t *testing.T, h *Hub) {
			luck := rand.New(rand.NewPCG(1, seed))
			b := &board{rows: map[string]int{}}
			var all []*client
			for range 5 {
				all = append(all, b.watch(t, h, 100*time.Millisecond))
			}
			names := map[string]int{}
			for range 200 {
				rows := maps.Clone(b.rows)
				for range luck.IntN(4) {
					if member := fmt.Sprint("u", luck.IntN(12)); luck.IntN(3) == 0 {
						delete(rows, member)
					} else {
						rows[member] = luck.IntN(5)
					}
				}
				switch luck.IntN(60) {
				case 0:
					b.change(func() { b.of = fmt.Sprint(luck.Uint32()) })
				case 1:
					b.change(func() { b.fails = errors.New("away") })
				case 2, 3, 4:
					b.change(func() { b.fails = nil })
				}
				b.change(func() { b.rows = rows })
				time.Sleep(time.Duration(luck.IntN(3)) * 100 * time.Millisecond)
				synctest.Wait()
				time.Sleep(time.Millisecond)
				c := all[luck.IntN(1+luck.IntN(len(all)))] // some clients take rarely
				if b.fails == nil {
					time.Sleep(failedFor) // until the source is read again
					synctest.Wait()
					names[c.take()]++
					require.Equal(t, b.rows, c.rows)
				}
			}
			require.NotZero(t, names[Change])
			require.NotZero(t, names[Snapshot])
		})
	}
}

func TestADifferenceIsEncodedOnceWhoeverTakesIt(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		b := &board{rows: map[string]int{"a": 1}}
		one, two := b.watch(t, h, 100*time.Millisecond), b.watch(t, h, 100*time.Millisecond)
		same := func(name string) {
			time.Sleep(time.Second + time.Millisecond) // between two reads
			a, _ := one.Take()
			b, _ := two.Take()
			require.Equal(t, name, a.Name)
			require.Equal(t, a, b)
			require.Same(t, &a.Rest[0], &b.Rest[0])
			require.Same(t, &a.Head[0], &b.Head[0])
		}
		same(Snapshot)
		b.change(func() { b.rows = map[string]int{"a": 1, "b": 2} })
		same(Change)
	})
}

func TestWhatIsBesideTheRowsMakesAVersionOnceASecond(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		b := &board{rows: map[string]int{"a": 1}}
		c := b.watch(t, h, 100*time.Millisecond)
		synctest.Wait()
		require.Equal(t, Snapshot, c.take())
		changes := 0
		for i := range 100 {
			b.change(func() { b.beside = fmt.Sprint(i) })
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if c.take() == Change {
				changes++
			}
		}
		require.InDelta(t, 10, changes, 1)
		time.Sleep(2 * time.Second)
		c.take()
		require.Empty(t, c.take())
		b.change(func() { b.rows = map[string]int{"a": 2} })
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, Change, c.take(), "rows don't wait")
	})
}

// A client that comes long after the last change gets the values as of the last read.
func TestASnapshotIsAsOfTheLastRead(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		b := &board{rows: map[string]int{"a": 1}}
		stays := b.watch(t, h, 100*time.Millisecond)
		defer stays.Leave()
		time.Sleep(time.Minute)
		c := b.watch(t, h, 100*time.Millisecond)
		require.Equal(t, Snapshot, c.take())
		require.Contains(t, []string{"00:00:59", "00:01:00"}, c.at)
	})
}

func TestAProblemIsSaidOnceAndASnapshotFollows(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		b := &board{rows: map[string]int{"a": 1}, fails: errors.New("away")}
		c := b.watch(t, h, 100*time.Millisecond)
		synctest.Wait()
		require.Equal(t, "problem away", c.take())
		time.Sleep(time.Minute)
		require.Empty(t, c.take())
		require.LessOrEqual(t, b.reads.Load(), int64(62), "what fails isn't read all the time")
		b.change(func() { b.fails = errors.New("lost") })
		time.Sleep(2 * time.Second)
		require.Equal(t, "problem lost", c.take())
		b.change(func() { b.fails = nil })
		time.Sleep(2 * time.Second)
		require.Equal(t, Snapshot, c.take())

		e, _ := b.watch(t, h, time.Second).Take() // its ID names the current version
		b.change(func() { b.fails = errors.New("lost") })
		time.Sleep(2 * time.Second)
		b.change(func() { b.fails = nil })
		time.Sleep(2 * time.Second)
		again := b.watch(t, h, time.Second)
		again.Resume(e.ID)
		require.Equal(t, Snapshot, again.take(), "whoever may have been told of the problem")
		require.Equal(t, Snapshot, c.take(), "who has missed the problem")
	})
}

func TestThereAreNoMoreSourcesThanMayBe(t *testing.T) {
	hub(t, 4, func(t *testing.T, h *Hub) {
		var all [6]board
		watch := func(i int, client string) (*Watch, error) { return h.Watch(i, client, time.Second, all[i].read) }
		one, err := watch(0, "a")
		require.NoError(t, err)
		_, err = watch(1, "a")
		require.NoError(t, err)
		_, err = watch(2, "a")
		require.ErrorIs(t, err, ErrClient)
		shared, err := watch(0, "b")
		require.NoError(t, err, "it is there")
		_, err = watch(2, "b")
		require.NoError(t, err)
		_, err = watch(3, "b")
		require.ErrorIs(t, err, ErrClient, "the last one is for others")
		_, err = watch(3, "d")
		require.NoError(t, err)
		_, err = watch(4, "c")
		require.ErrorIs(t, err, ErrFull)
		one.Leave()
		_, err = watch(4, "c")
		require.ErrorIs(t, err, ErrFull, "another one watches it still")
		shared.Leave()
		_, err = watch(4, "c")
		require.NoError(t, err)
		h.End()
		_, err = watch(5, "d")
		require.ErrorIs(t, err, ErrEnded)
		_, err = watch(4, "d")
		require.ErrorIs(t, err, ErrEnded)
	})
}

func TestNewsComesWithTheReadThatHasIt(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		b := &board{rows: map[string]int{"a": 1}}
		w, err := h.Watch(b, "client", 100*time.Millisecond, func(ctx context.Context) (State, error) {
			time.Sleep(time.Millisecond) // so that the first read does not end before the test waits for it
			return b.read(ctx)
		})
		require.NoError(t, err)
		c := &client{Watch: w, t: t}
		e, news := c.Take()
		require.Nil(t, e)
		<-news
		require.Equal(t, Snapshot, c.take())
		e, news = c.Take()
		require.Nil(t, e)
		began := time.Now()
		time.AfterFunc(3*time.Second, func() { b.change(func() { b.rows = map[string]int{"a": 2} }) })
		<-news
		require.InDelta(t, 3, time.Since(began).Seconds(), 0.11)
		require.Equal(t, Change, c.take())
	})
}

// A read may return rows that share memory with the next read, so they must not be modified.
func TestRowsAreNotWrittenTo(t *testing.T) {
	hub(t, 10, func(t *testing.T, h *Hub) {
		backing := make([]byte, 0, 100)
		backing = append(backing, `{"member":"a"}`...)
		rest := backing[len(backing):cap(backing)]
		read := func(context.Context) (State, error) {
			return State{Snapshot: []byte("{"), Change: []byte("{"), Rows: []Row{{"a", backing}}}, nil
		}
		w, err := h.Watch("k", "c", time.Second, read)
		require.NoError(t, err)
		synctest.Wait()
		e, _ := w.Take()
		require.Equal(t, Snapshot, e.Name)
		require.Equal(t, bytes.Repeat([]byte{0}, len(rest)), rest)
	})
}
