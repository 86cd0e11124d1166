package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// leader writes a copy in a law, and may be paused at any time.
type leader struct {
	fence   Fence
	writing *Writing
}

// In whatever order leaders write a copy, with crashes, repeated calls and takeovers, only the leader with the
// largest token writes, and the copy ends with the right rows.
func TestWhateverOrderACopyIsWrittenInItComesToItsRows(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, url string) {
		other := open(t, url)
		for _, s := range []*Store{s, other} {
			if s.read != s.write { // SQLite: the machine does not crash here
				_, err := s.write.ExecContext(t.Context(), `PRAGMA synchronous = OFF`)
				require.NoError(t, err)
			}
		}
		round, token := 0, int64(0)
		rapid.Check(t, func(t *rapid.T) {
			round++
			rows := ranked(1, rapid.Int64Range(0, 60).Draw(t, "members"))
			wanted := final(int64(len(rows)))
			if rapid.Bool().Draw(t, "a backup") {
				wanted = backup(int64(len(rows)), 1)
			}
			wanted.Board = fmt.Sprintf("b%d", round)
			var leaders []*leader
			for range rapid.IntRange(1, 25).Draw(t, "steps") {
				switch rapid.SampledFrom([]string{"new", "same token", "goes on", "goes on", "goes on", "goes on", "goes on"}).Draw(t, "step") {
				case "new":
					token++
					leaders = append(leaders, &leader{fence: Fence{token, fmt.Sprintf("o%d", token)}})
				case "same token": // a Redis that went back assigns a token twice
					if len(leaders) > 0 {
						of := rapid.SampledFrom(leaders).Draw(t, "whose")
						leaders = append(leaders, &leader{fence: Fence{of.fence.Token, fmt.Sprintf("%s'%d", of.fence.Owner, len(leaders))}})
					}
				default:
					if len(leaders) == 0 {
						continue
					}
					l := rapid.SampledFrom(leaders).Draw(t, "leader")
					before, err := s.LargestToken(t.Context())
					require.NoError(t, err)
					wrote, err := l.step(t, []*Store{s, other}[rapid.IntRange(0, 1).Draw(t, "process")], wanted, rows)
					if !errors.Is(err, ErrFenced) {
						require.NoError(t, err)
						require.True(t, !wrote || l.fence.Token >= before, "an earlier leader wrote")
					}
				}
			}
			token++
			last := &leader{fence: Fence{token, "last"}}
			require.NoError(t, last.begin(t, s, wanted))
			if !last.writing.Whole() {
				require.NoError(t, last.writing.Append(t.Context(), rows[last.writing.Written():]))
			}
			require.NoError(t, last.writing.Finish(t.Context()))
			_, err := s.Sweep(t.Context(), last.fence)
			require.NoError(t, err)
			w, err := s.Window(t.Context(), wanted.Board, wanted.Period, wanted.Name)
			require.NoError(t, err)
			found := all(t, s, w.ID)
			if !w.Final() {
				rows = byRank(rows)
			}
			require.True(t, slices.Equal(rows, found), "%v instead of %v", found, rows)
			require.NoError(t, s.Verify(t.Context(), w.ID))
			copies, err := s.Windows(t.Context(), Filter{Board: wanted.Board, All: true}, Place{}, 10)
			require.NoError(t, err)
			require.Len(t, copies, 1)
		})
	})
}

// step does one operation as a leader, and reports whether it used a transaction. An error other than ErrFenced is
// a failure.
func (l *leader) step(t *rapid.T, s *Store, wanted Window, rows []Row) (wrote bool, err error) {
	if l.writing == nil {
		return true, l.begin(t, s, wanted)
	}
	switch rapid.SampledFrom([]string{"begin", "append", "append", "append", "unknown", "unknown", "finish", "sweep", "crash"}).Draw(t, "does") {
	case "begin":
		return true, l.begin(t, s, wanted)
	case "crash":
		l.writing = nil
		return false, nil
	case "append":
		return l.append(t, rows)
	case "unknown": // the call succeeds, but its reply is lost
		before := *l.writing
		defer func() { *l.writing = before }()
		return l.append(t, rows)
	case "finish":
		if l.writing.Whole() {
			return false, l.writing.Finish(t.Context())
		}
		err := l.writing.Finish(t.Context())
		if errors.Is(err, ErrInvalid) { // by its own state, rows are missing
			require.Less(t, l.writing.Written(), int64(len(rows)))
			return false, nil
		}
		return true, err
	}
	_, err = s.Sweep(t.Context(), l.fence)
	return true, err
}

func (l *leader) begin(t *rapid.T, s *Store, wanted Window) (err error) {
	writing, err := s.Begin(t.Context(), l.fence, wanted)
	if err == nil {
		l.writing = writing
	}
	return err
}

func (l *leader) append(t *rapid.T, rows []Row) (wrote bool, err error) {
	if is := l.writing.Window(); !is.Final() && l.writing.Whole() { // its rows have other ranks by now
		return false, nil
	}
	written := l.writing.Written()
	from := rapid.Int64Range(0, written).Draw(t, "from")
	to := rapid.Int64Range(from, int64(len(rows))).Draw(t, "to")
	return to > from, l.writing.Append(t.Context(), rows[from:to])
}
