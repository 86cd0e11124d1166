package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
)

var update = flag.Bool("update", false, "write the golden vectors anew, which is a new format")

const (
	weekly  = "global:weekly:2026-W47"
	monthly = "global:monthly:2026-11"
	listing = "1763337600000 1763942400000 1769126400000"
)

var head = Head{Prefix: "lb", Shard: 0, Shards: 1, Schema: `{"v":1}`}

func at(now int64, positions ...string) ranking.Instant {
	in := ranking.Instant{Now: now, Ledger: map[string]string{}, Origins: map[string]string{}, Rules: map[string]string{}}
	for i, p := range positions {
		field := fmt.Sprintf("events/%d", i)
		in.Ledger[field], in.Origins[field], in.Rules[field] = p, "0 0", "00000000000000aa"
	}
	return in
}

func page(in ranking.Instant, window string, first, hidden bool, rows ...ranking.SnapshotRow) *ranking.SnapshotPage {
	return &ranking.SnapshotPage{Instant: in, Window: window, Listing: listing, First: first, Hidden: hidden, Rows: rows}
}

func row(member string, score float64) ranking.SnapshotRow {
	return ranking.SnapshotRow{Member: member, Score: score}
}

// sample has all that a file can have.
func sample() (begin ranking.Instant, pages []*ranking.SnapshotPage, beside ranking.Beside) {
	begin = at(1000, "120..480@8f3c000000000000#00000000000000aa", "7")
	later := at(1100, "480", "7")
	latest := at(1200, "480..500@0000000000000001#00000000000000bb", "9", "0")
	latest.Origins["events/1"] = "5 1763337600000"
	latest.Rules["events/0"] = "00000000000000bb"
	pages = []*ranking.SnapshotPage{
		page(begin, monthly, true, false, row("abandoned", 3)),
		page(later, monthly, true, true, row("", 0), row("banned", -12.5)),
		page(later, monthly, false, false, row("ann", 25.75), row("bob", 1e-300)),
		page(latest, monthly, false, false, row("ann", 26.5), row("zoë\x00", 1.7976931348623157e308)),
		page(latest, "eu:weekly:2026-W47", true, false, row("gone", 1)),
		{Window: "eu:weekly:2026-W47", Gone: true},
		page(latest, weekly, true, false),
	}
	beside = ranking.Beside{Instant: latest, Dropped: map[string]string{"over:weekly": "5", "eu:weekly:2026-W47": "x"},
		Final: map[string]string{monthly: "1 1763942400000000"}, Texts: map[string]string{"00000000000000aa": `{"rules":1}`}}
	return begin, pages, beside
}

func written(t testing.TB, begin ranking.Instant, pages []*ranking.SnapshotPage, beside ranking.Beside) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, head, &begin)
	require.NoError(t, err)
	for _, p := range pages {
		require.NoError(t, w.Page(p))
	}
	_, err = w.End(&beside)
	require.NoError(t, err)
	return b.Bytes()
}

// sampleFile is the sample's file.
func sampleFile(t testing.TB) []byte {
	t.Helper()
	begin, pages, beside := sample()
	return written(t, begin, pages, beside)
}

func surveyed(t testing.TB, file []byte) (*Survey, []*ranking.SnapshotPage) {
	t.Helper()
	s, err := SurveyOf(bytes.NewReader(file))
	require.NoError(t, err)
	var pages []*ranking.SnapshotPage
	require.NoError(t, s.Pages(bytes.NewReader(file), func(p *ranking.SnapshotPage) error { pages = append(pages, p); return nil }))
	return s, pages
}

func TestWhatIsWrittenIsReadAndWhatWasBegunAnewDoesntCount(t *testing.T) {
	begin, pages, beside := sample()
	s, got := surveyed(t, written(t, begin, pages, beside))
	require.Equal(t, begin, s.Begin)
	require.Equal(t, beside, s.Beside)
	require.Equal(t, head, s.Head)
	pages[6].Rows = nil
	require.Equal(t, []*ranking.SnapshotPage{pages[1], pages[2], pages[3], pages[6]}, got)
	require.Equal(t, Counts{Rows: 6, Windows: 2, Pages: 4}, s.Counts)
	require.Equal(t, map[string]int64{"events/0": 500, "events/1": 9, "events/2": 0}, s.Reach)
	require.Equal(t, "5 1763337600000", s.Origins["events/1"])
	require.Equal(t, map[string]bool{"00000000000000aa": true, "00000000000000bb": true}, s.Rules["events/0"])
}

func TestASnapshotOfNoWindowsIsWhole(t *testing.T) {
	begin, _, beside := sample()
	s, pages := surveyed(t, written(t, begin, nil, beside))
	require.Empty(t, pages)
	require.Equal(t, beside, s.Beside)
}

// The golden file is what this format is for good: later versions have to read it.
func TestTheGoldenFileIsRead(t *testing.T) {
	path := filepath.Join("testdata", "v1")
	if *update {
		require.NoError(t, os.WriteFile(path, sampleFile(t), 0o600))
	}
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	s, pages := surveyed(t, file)
	text, err := json.MarshalIndent(map[string]any{"head": s.Head, "begin": s.Begin, "pages": pages, "beside": s.Beside, "counts": s.Counts}, "", " ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path+".json", text, 0o600))
	}
	want, err := os.ReadFile(path + ".json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

func TestEveryByteThatIsAnotherAndEveryCutIsFound(t *testing.T) {
	file := sampleFile(t)
	for i := range file {
		for _, bit := range []byte{1, 0x80} {
			other := bytes.Clone(file)
			other[i] ^= bit
			_, err := SurveyOf(bytes.NewReader(other))
			require.ErrorIs(t, err, ErrDamaged, "byte %d", i)
		}
		_, err := SurveyOf(bytes.NewReader(file[:i]))
		require.ErrorIs(t, err, ErrDamaged, "cut at %d", i)
	}
	_, err := SurveyOf(bytes.NewReader(append(bytes.Clone(file), 0)))
	require.ErrorContains(t, err, "behind its end")
}

// records are a file of some records as they are.
func packed(t testing.TB, records []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := newBlockWriter(&b)
	require.NoError(t, err)
	w.records = records
	require.NoError(t, w.flush())
	return b.Bytes()
}

func raw(do func(w *Writer)) []byte {
	w := &Writer{blocks: &blockWriter{}, rules: map[string]bool{}}
	w.letter('H')
	w.text(`{"prefix":"lb","shard":0,"shards":1,"schema":"{}"}`)
	in := at(1, "100")
	w.instant(&in)
	w.last = ranking.Instant{}
	do(w)
	return w.blocks.records
}

func TestWhatIsWrongWithAFileIsNamedWithWhere(t *testing.T) {
	begins := func(w *Writer) { w.letter('W'); w.text(weekly); w.text(listing) }
	instant := func(positions ...string) func(w *Writer) {
		return func(w *Writer) { in := at(2, positions...); w.instant(&in) }
	}
	rows := func(rows ...ranking.SnapshotRow) func(w *Writer) {
		return func(w *Writer) { _ = w.rows(rows, false) }
	}
	ends := func(numbers ...uint64) func(w *Writer) {
		return func(w *Writer) {
			w.letter('E')
			for _, n := range numbers {
				w.number(n)
			}
		}
	}
	for want, steps := range map[string][]func(*Writer){
		"before its first position":              {begins, instant("99")},
		`position "torn:5"`:                      {begins, instant("torn:5")},
		"has no position, and had one":           {begins, instant()},
		"isn't what may come here":               {rows()},
		"is no listing":                          {func(w *Writer) { w.letter('W'); w.text(weekly); w.text("1 2") }},
		"no number":                              {begins, instant("100"), rows(row("a", math.Inf(1)))},
		"somebody without an id":                 {begins, instant("100"), rows(row("", 1))},
		"a text of 257 bytes":                    {begins, instant("100"), rows(row(strings.Repeat("a", 257), 1))},
		"is gone, and wasn't read":               {func(w *Writer) { w.letter('G'); w.text(weekly) }},
		"ends in the middle":                     {func(w *Writer) { w.letter('W'); w.number(50) }},
		"it ends before its end record":          {begins, instant("100"), rows()},
		"a page of 5000 rows":                    {begins, instant("100"), func(w *Writer) { w.letter('P'); w.letter('s'); w.number(5000) }},
		"was to have {Rows:2 Windows:1 Pages:1}": {begins, instant("100"), rows(row("a", 1)), instant("100"), ends(2, 1, 1)},
		"something is behind its end record":     {instant("100"), ends(0, 0, 0), func(w *Writer) { w.letter('x') }},
		"comes twice": {instant("100"), func(w *Writer) {
			for range 2 {
				w.letter('D')
				w.text("a")
				w.text("b")
			}
		}},
		"has no page": {begins, instant("100"), ends(0, 1, 0)},
		"the origin of events/0": {begins, func(w *Writer) {
			in := at(2, "100")
			in.Origins["events/0"] = "x"
			w.instant(&in)
		}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := SurveyOf(bytes.NewReader(packed(t, raw(func(w *Writer) {
				for _, step := range steps {
					step(w)
				}
			}))))
			var damaged *DamagedError
			require.ErrorAs(t, err, &damaged)
			require.Contains(t, damaged.What, want)
		})
	}
}

// What a writer and a reader hold doesn't grow with the file.
func TestAFileIsWrittenAndReadInFlatMemory(t *testing.T) {
	begin, _, beside := sample()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	counted := &countedWriter{}
	w, err := NewWriter(counted, head, &begin)
	require.NoError(t, err)
	for n := range 600 {
		p := page(begin, weekly, n == 0, false)
		for i := range 500 {
			p.Rows = append(p.Rows, row(fmt.Sprintf("%x", random.Uint64()), float64(i)))
		}
		require.NoError(t, w.Page(p))
	}
	_, err = w.End(&beside)
	require.NoError(t, err)
	require.Greater(t, counted.n, 3<<20)
	require.Less(t, cap(w.blocks.records)+cap(w.blocks.packed), 2<<20)
}

type countedWriter struct{ n int }

func (w *countedWriter) Write(b []byte) (int, error) { w.n += len(b); return len(b), nil }

func TestARowThatIsTooLargeForABlockIsntReached(t *testing.T) {
	require.Less(t, rowsAtOnce*(longestMember+2+8)+blockSize, mostBlock)
}

func FuzzAFileIsReadOrSaysWhatIsWrong(f *testing.F) {
	f.Add(raw(func(w *Writer) { w.letter('W'); w.text(weekly); w.text(listing); in := at(2, "100"); w.instant(&in) }))
	begin, pages, beside := sample()
	w := &Writer{blocks: &blockWriter{to: io.Discard}, rules: map[string]bool{}}
	w.letter('H')
	w.text(`{"prefix":"lb","shard":0,"shards":1,"schema":"{}"}`)
	w.instant(&begin)
	w.last = ranking.Instant{}
	for _, p := range pages {
		require.NoError(f, w.Page(p))
	}
	whole := func() []byte {
		w.ends(true)
		w.instant(&beside.Instant)
		w.letter('E')
		for _, n := range []int64{w.all.Rows, w.all.Windows, w.all.Pages} {
			w.number(uint64(n)) //nolint:gosec // a count
		}
		return w.blocks.records
	}()
	f.Add(whole)
	f.Fuzz(func(t *testing.T, records []byte) {
		if len(records) == 0 || len(records) > 1<<20 {
			return
		}
		file := packed(t, records)
		s, err := SurveyOf(bytes.NewReader(file))
		if err != nil {
			var damaged *DamagedError
			if !errors.As(err, &damaged) || damaged.What == "" {
				t.Fatalf("%v says nothing of what is wrong", err)
			}
			return
		}
		// What is read is written, and read again as the same.
		var b bytes.Buffer
		again, err := NewWriter(&b, s.Head, &s.Begin)
		require.NoError(t, err)
		var first, second []*ranking.SnapshotPage
		require.NoError(t, s.Pages(bytes.NewReader(file), func(p *ranking.SnapshotPage) error {
			first = append(first, p)
			return again.Page(p)
		}))
		_, err = again.End(&s.Beside)
		require.NoError(t, err)
		copied, err := SurveyOf(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		require.NoError(t, copied.Pages(bytes.NewReader(b.Bytes()), func(p *ranking.SnapshotPage) error { second = append(second, p); return nil }))
		require.Equal(t, s.Counts, copied.Counts)
		require.Len(t, second, len(first))
	})
}

func FuzzBytesAreNoFileOrAWholeOne(f *testing.F) {
	f.Add([]byte(magic))
	file, err := os.ReadFile(filepath.Join("testdata", "v1"))
	require.NoError(f, err)
	f.Add(file)
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := SurveyOf(bytes.NewReader(file)); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}
