package ranking

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSinceWhenItIsSoOutlivesWhoLooked(t *testing.T) {
	f := fixed(t)
	clock := func() time.Time { return f.client.Time(t.Context()).Val().Truncate(time.Millisecond) }
	holds := func(text string) {
		t.Helper()
		require.NoError(t, f.client.Set(t.Context(), RecoveryKey(f.prefix), text, 0).Err())
	}
	note := func() RecoveryNote {
		t.Helper()
		n, err := f.store.RecoveryNote(t.Context())
		require.NoError(t, err)
		return n
	}
	// found notes a word, and expects that it is so from a moment on; the zero one for now.
	found := func(by string, want time.Time) {
		t.Helper()
		before := clock()
		since, err := f.store.NoteRecovery(t.Context(), by)
		require.NoError(t, err)
		after := clock()
		if want.IsZero() {
			require.False(t, since.Before(before) || since.After(after), "%v isn't of now", since)
			want = since
		}
		require.Equal(t, want.UnixMilli(), since.UnixMilli())
		n := note()
		require.Equal(t, by, n.By)
		require.Equal(t, want.UnixMilli(), n.Since.UnixMilli())
		require.False(t, n.Looked.Before(before) || n.Looked.After(after), "%v isn't of now", n.Looked)
	}
	require.Empty(t, note())
	found("log", time.Time{})

	hour := clock().Add(-time.Hour)
	ms := func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }
	holds("nothing " + ms(hour) + " " + ms(hour.Add(time.Minute)))
	require.Equal(t, hour.Add(time.Minute).UnixMilli(), note().Looked.UnixMilli())
	found("nothing", hour)
	found("nothing", hour)
	found("snapshot", time.Time{})
	found("nothing", time.Time{}) // and not since it was the last time

	holds("nothing " + ms(clock().Add(time.Hour)) + " 1") // by a clock that went back since
	found("nothing", time.Time{})

	for _, text := range []string{"nothing", "nothing 1", "nothing x 1", "nothing 1 x", "nothing 1 1 1"} {
		holds(text)
		require.Empty(t, note(), text)
		found("nothing", time.Time{})
	}
}
