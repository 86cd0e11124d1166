package store

// Tests of docs/archive.md and docs/examples/checksum.py against real archives.

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/test/testenv"
)

// published writes the copies for the documents' queries: two weeks and a month of a board with the default rule,
// and a week of one with its own rule.
func published(t *testing.T, s *Store) {
	t.Helper()
	for i, name := range []string{"2026-W46", "2026-W47"} {
		w := final(0)
		w.Name, w.Start, w.End = name, w.Start.AddDate(0, 0, 7*(i-1)), w.End.AddDate(0, 0, 7*(i-1))
		rows := hidden(ranked(1, 20), 1, 12)
		rows[3+i].Member = "emi"
		archived(t, s, first, w, rows)
	}
	rows, err := s.Erase(t.Context(), first, ranked(10, 10)[0].Member)
	require.NoError(t, err)
	require.EqualValues(t, 2, rows)
	month := final(0)
	month.Period, month.Name, month.Start, month.End = "monthly", "2026-10", week.AddDate(0, -1, -15), week.AddDate(0, 0, -15)
	archived(t, s, first, month, ranked(1, 20))
	own := final(0)
	own.Board, own.Fields = "duels", twoFields()
	archived(t, s, first, own, []Row{
		{Place: 1, Rank: 1, Member: "emi", Tuple: codec.Tuple{10, 2}, Score: 10.5, ReachedAt: week.UnixMilli()},
		{Place: 2, Rank: 2, Member: "a\x00\x01b", Tuple: codec.Tuple{7, 0}, Score: 7.5, ReachedAt: week.UnixMilli() + 999},
	})
}

func TestTheQueriesThatAreDocumentedFindWhatTheySay(t *testing.T) {
	text, err := os.ReadFile("../../../docs/archive.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```sql\n-- ([^\n]+)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, strings.Count(string(text), "```sql"), "a query begins with what it is for")
	found := map[string]int{
		"the winners of a month": 3, "how a member did in every week": 2,
		"a board with fields of its own": 1, "every revision of a window": 1,
	}
	tried := map[string]int{}
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		published(t, s)
		for _, block := range blocks {
			name, query := block[1], block[2]
			want, is := found[name]
			require.True(t, is, name)
			tried[name]++
			rows, err := s.read.QueryContext(t.Context(), query)
			require.NoError(t, err, name)
			n := 0
			for rows.Next() {
				n++
			}
			require.NoError(t, rows.Err(), name)
			require.NoError(t, rows.Close())
			require.Equal(t, want, n, name)
		}
	})
	require.Len(t, tried, len(found))
}

// A program in another language can compute the checksum from the rows alone.
func TestAChecksumIsVerifiedByAProgramOfAnotherLanguage(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		testenv.NotRun(t, "it needs python3")
	}
	url := sqliteURL(t)
	s := open(t, url)
	require.NoError(t, s.Migrate(t.Context()))
	published(t, s)
	run := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), python, "../../../docs/examples/checksum.py", strings.TrimPrefix(url, "sqlite:")).CombinedOutput()
		return string(out), err
	}
	out, err := run()
	require.NoError(t, err, out)
	copies := states(t, s, true)
	require.Equal(t, copies, strings.Count(out, ": right\n"), out)
	_, err = s.write.ExecContext(t.Context(), `UPDATE standings SET reached_at = reached_at + 1 WHERE rank = 2`)
	require.NoError(t, err)
	out, err = run()
	require.Error(t, err)
	require.Equal(t, copies, strings.Count(out, ": WRONG\n"), out)
}
