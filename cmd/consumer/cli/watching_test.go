package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWatchedResultIsWrittenAgainOnceItHasChanged(t *testing.T) {
	for asJSON, want := range map[bool]string{false: "one\n\ntwo\n", true: "\"one\"\n\"two\"\n"} {
		var out, errs bytes.Buffer
		w := &Watch[string]{
			Document: func(s *string) (document, matters any) { return s, s },
			Text:     func(s *string) error { _, err := fmt.Fprintln(&out, *s); return err },
		}
		show := w.changes(&Program{Stdout: &out, Stderr: &errs}, asJSON)
		away := &result[string]{err: errors.New("can't connect\n\x1b")}
		one, two := &result[string]{value: new("one")}, &result[string]{value: new("two")}
		for _, r := range []*result[string]{one, nil, one, away, away, nil, one, two} {
			require.NoError(t, show(r, 0))
		}
		require.Equal(t, want, out.String())
		require.Equal(t, "consumer: can't connect \\x1b\nconsumer: reading works again\n", errs.String())
	}
}

func TestATerminalSaysWhyItShowsAnOldResult(t *testing.T) {
	s := &Shown[string]{}
	s.take(nil, 2500*time.Millisecond)
	require.Equal(t, []string{"no reply for 2s"}, s.Trouble(80))
	s.take(&result[string]{value: new("one"), at: time.Now().Add(-5500 * time.Millisecond)}, 0)
	require.Empty(t, s.Trouble(80))
	s.take(nil, 2500*time.Millisecond)
	require.Equal(t, []string{"no reply for 2s; the rest is 5s old"}, s.Trouble(80))
	s.take(&result[string]{err: errors.New("can't connect\x1b")}, 0)
	require.Equal(t, []string{`can't connect\x1b`}, s.Trouble(80))
	require.Equal(t, "one", *s.Last)
}
