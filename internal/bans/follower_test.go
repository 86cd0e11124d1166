package bans

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestTheTopicIsReadToItsEndAndFollowed(t *testing.T) {
	w := newWorld(t, topic)
	w.ban(of(Key{"", "a"}))
	w.ban(of(Key{"eu", "a"}))
	w.ban(of(Key{"", "b"}))
	end := w.put(":a", nil)
	f := w.follower(zap.NewNop())
	require.Equal(t, State{{"eu", "a"}: of(Key{"eu", "a"}), {"", "b"}: of(Key{"", "b"})}, w.ready(f, end+1))
	end = w.ban(of(Key{"", "c"}))
	require.Len(t, w.ready(f, end+1), 3)
	end = w.put(":b", nil)
	require.Len(t, w.ready(f, end+1), 2)
}

func TestABadRecordIsLoggedOnceAndHoldsUpNothing(t *testing.T) {
	w := newWorld(t, topic)
	w.ban(of(Key{"", "a"}))
	w.put(":a", []byte(`{"member":"b"}`)) // the key's earlier ban stays in force
	end := w.ban(of(Key{"", "b"}))
	seen, logs := observer.New(zap.ErrorLevel)
	f := w.follower(zap.New(seen))
	require.Len(t, w.ready(f, end+1), 2)
	require.EqualValues(t, 1, f.Bad())
	require.Equal(t, 1, logs.Len())
	require.EqualValues(t, 1, logs.All()[0].ContextMap()["offset"])
}

func TestATopicThatIsAwayIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	f := w.follower(zap.NewNop())
	require.Eventually(t, func() bool { return f.Waits() != nil }, 20*time.Second, 10*time.Millisecond)
	require.Nil(t, f.State())
	made, err := Topic(topic).Ensure(t.Context(), w.client, "points")
	require.NoError(t, err)
	require.True(t, made)
	w.ready(f, 0)
	require.NoError(t, f.Waits())
}

// While the topic is missing, and while it is read again, banned members stay banned.
func TestATopicThatIsMadeAgainIsReadAgain(t *testing.T) {
	w := newWorld(t, topic)
	w.ban(of(Key{"", "a"}))
	end := w.ban(of(Key{"", "b"}))
	f := w.follower(zap.NewNop())
	w.ready(f, end+1)
	admin := kadm.NewClient(w.other)
	_, err := admin.DeleteTopics(t.Context(), topic)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.Waits() != nil }, 20*time.Second, 10*time.Millisecond)
	require.Len(t, f.State(), 2)
	_, err = admin.CreateTopic(t.Context(), 1, 1, nil, topic)
	require.NoError(t, err)
	w.other.PurgeTopicsFromClient(topic)
	w.ban(of(Key{"", "c"}))
	require.Eventually(t, func() bool { s := f.State(); return len(s) == 1 && s[Key{"", "c"}] != nil }, 30*time.Second, 10*time.Millisecond)
}

func TestWhatIsPublishedIsReadBack(t *testing.T) {
	w := newWorld(t, topic)
	p := &Publisher{w.follower(zap.NewNop())}
	require.NoError(t, p.Put(t.Context(), of(Key{"", "a"})))
	require.Equal(t, State{{"", "a"}: of(Key{"", "a"})}, p.Follower.State())
	found, err := p.Remove(t.Context(), Key{"", "a"})
	require.NoError(t, err)
	require.True(t, found)
	require.Empty(t, p.Follower.State())
	found, err = p.Remove(t.Context(), Key{"", "a"})
	require.NoError(t, err)
	require.False(t, found)
}

func TestAnErasureIsForGood(t *testing.T) {
	w := newWorld(t, topic)
	p := &Publisher{w.follower(zap.NewNop())}
	erased := of(Key{"", "a"})
	erased.Erased = true
	require.NoError(t, p.Put(t.Context(), erased))
	_, err := p.Remove(t.Context(), erased.Key)
	require.ErrorIs(t, err, ErrErased)
	require.ErrorIs(t, p.Put(t.Context(), of(erased.Key)), ErrErased)
	require.True(t, p.Follower.State()[erased.Key].Erased)
	// Another writer, which checked before the erasure existed, replaces it. A later writer that has not seen this
	// restores the erasure.
	w.ready(p.Follower, w.ban(of(erased.Key))+1)
	require.ErrorIs(t, p.Put(t.Context(), of(erased.Key)), ErrErased)
	require.Eventually(t, func() bool { return p.Follower.State()[erased.Key].Erased }, 20*time.Second, 10*time.Millisecond)
}
