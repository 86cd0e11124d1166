package bans

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// desk returns a desk for the world's topic and standings in memory. With kept, a keeper keeps them up to date.
func (w *world) desk(s *fake, kept bool) *Desk {
	w.Helper()
	f := w.follower(zap.NewNop())
	if kept {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			NewKeeper(f, s, zap.NewNop()).Watch(ctx)
		}()
		w.Cleanup(func() { cancel(); <-ended })
	}
	return &Desk{Publisher: &Publisher{f}, Standings: func(context.Context) (Standings, error) { return s, nil }}
}

func (w *world) within(d time.Duration) context.Context {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

func (s *fake) holds(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.held[k]
	return ok
}

func TestADeskSeesThatABanIsDone(t *testing.T) {
	w := newWorld(t, topic)
	s := &fake{held: map[Key]Ban{}, now: at}
	d := w.desk(s, true)
	for _, k := range []Key{{"", "a"}, {"eu", "a"}} {
		require.NoError(t, d.Publisher.Put(t.Context(), of(k)))
		require.NoError(t, d.Await(w.within(20*time.Second), k))
		require.True(t, s.holds(k))
	}
	over := of(Key{"", "b"})
	over.At, over.Until = at.Add(-2*time.Hour), at.Add(-time.Hour)
	require.NoError(t, d.Publisher.Put(t.Context(), over))
	gone := of(Key{"", "c"})
	gone.Erased = true
	require.NoError(t, d.Publisher.Put(t.Context(), gone))
	require.NoError(t, d.Await(w.within(20*time.Second), gone.Key))
	all, err := d.List(t.Context())
	require.NoError(t, err)
	var states []string
	for _, l := range all {
		states = append(states, l.Text()+" "+l.State)
		require.True(t, *l.Done, l.Text())
	}
	require.Equal(t, []string{":a banned", "eu:a banned", ":b over", ":c erased"}, states)
	_, err = d.Publisher.Remove(t.Context(), Key{"eu", "a"})
	require.NoError(t, err)
	require.NoError(t, d.Await(w.within(20*time.Second), Key{"eu", "a"}))
	require.False(t, s.holds(Key{"eu", "a"}))
}

func TestADeskSaysWhyABanIsNotDoneYet(t *testing.T) {
	w := newWorld(t, topic)
	d := w.desk(&fake{held: map[Key]Ban{}, now: at}, false)
	k := Key{"", "a"}
	require.NoError(t, d.Publisher.Put(t.Context(), of(k)))
	require.ErrorIs(t, d.Await(w.within(50*time.Millisecond), k), ErrNotYet)
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.False(t, *all[0].Done)

	away := errors.New("away")
	d.Standings = func(context.Context) (Standings, error) { return nil, away }
	require.ErrorIs(t, d.Await(w.within(50*time.Millisecond), k), away)
	all, err = d.List(t.Context())
	require.ErrorIs(t, err, away)
	require.Len(t, all, 1)
	require.Nil(t, all[0].Done)
	require.Equal(t, StateBanned, all[0].State)
	require.WithinDuration(t, time.Now(), d.Now(t.Context()), time.Minute)
}

func TestABanIsDoneOnceTheStandingsHoldItAsTheTopicDoes(t *testing.T) {
	k := Key{Board: "eu", Member: "u1"}
	held := func(b Ban) map[Key]Ban {
		b.Key = k
		return map[Key]Ban{{Member: "u1"}: {Key: Key{Member: "u1"}}, k: b}
	}
	only := map[Key]Ban{{Member: "u1"}: {Key: Key{Member: "u1"}}}
	banned, erased, over := of(k), of(k), of(k)
	erased.Erased, over.Until = true, at
	for name, c := range map[string]struct {
		record *Record
		held   map[Key]Ban
		want   bool
	}{
		"banned":             {banned, held(Ban{}), true},
		"still being hidden": {banned, held(Ban{Pending: true}), false},
		"only on all boards": {banned, only, false},
		"hidden, not erased": {erased, held(Ban{}), false},
		"erased":             {erased, held(Ban{Erased: true}), true},
		"shown":              {nil, only, true},
		"still held":         {nil, held(Ban{}), false},
		"over, and held":     {over, held(Ban{}), false},
		"over":               {over, only, true},
	} {
		require.Equal(t, c.want, agree(c.record, at, k, c.held), name)
	}
}

// The wait for a consumer ends during a call, which then fails by its deadline: that is no fault of Redis.
func TestAWaitThatEndsDuringACallIsNoErrorOfRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		away := errors.New("Redis is away")
		calls := 0
		d := &Desk{Standings: func(ctx context.Context) (Standings, error) {
			if calls++; calls == 1 {
				return nil, away
			}
			<-ctx.Done()
			return nil, os.ErrDeadlineExceeded
		}}
		require.ErrorIs(t, d.Await(ctx, Key{Member: "u"}), away)
		calls = 1
		again, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, d.Await(again, Key{Member: "u"}), ErrNotYet)
	})
}
