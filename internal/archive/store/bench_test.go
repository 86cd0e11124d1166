package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/test/testenv"
)

// benchmarkedRows is the number of rows of a copy in a benchmark.
const benchmarkedRows = 200_000

// scattered returns the row of a rank with a member id that is unrelated to the rank.
func scattered(rank, of int64) Row {
	points := (of - rank) / 3
	return Row{
		Place: rank, Rank: rank, Member: fmt.Sprintf("player-%016x", uint64(rank)*0x9E3779B97F4A7C15), Tuple: codec.Tuple{points},
		Score: float64(points) + 0.5, ReachedAt: week.UnixMilli() + rank%604_800_000,
	}
}

func benchmarkOnBoth(b *testing.B, run func(b *testing.B, s *Store)) {
	b.Helper()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return sqliteURL(b) }, "postgres": func() string { return testenv.Postgres(b) },
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, url())
			require.NoError(b, s.Migrate(b.Context()))
			run(b, s)
		})
	}
}

// written writes a copy of the given number of rows, ten thousand at a time.
func written(b testing.TB, s *Store, w Window) Window {
	b.Helper()
	writing, err := s.Begin(b.Context(), first, w)
	require.NoError(b, err)
	rows := make([]Row, 0, 10_000)
	for rank := int64(1); rank <= w.Members; rank++ {
		if rows = append(rows, scattered(rank, w.Members)); len(rows) == cap(rows) || rank == w.Members {
			require.NoError(b, writing.Append(b.Context(), rows))
			rows = rows[:0]
		}
	}
	require.NoError(b, writing.Finish(b.Context()))
	return writing.Window()
}

func BenchmarkWrite(b *testing.B) {
	benchmarkOnBoth(b, func(b *testing.B, s *Store) {
		n := int64(0)
		for b.Loop() {
			n++
			w := final(benchmarkedRows)
			w.Revision = n
			written(b, s, w)
		}
		b.ReportMetric(float64(n*benchmarkedRows)/b.Elapsed().Seconds(), "rows/s")
	})
}

func BenchmarkRead(b *testing.B) {
	benchmarkOnBoth(b, func(b *testing.B, s *Store) {
		w := written(b, s, final(benchmarkedRows))
		n := int64(0)
		b.ResetTimer()
		for b.Loop() {
			n += int64(len(all(b, s, w.ID)))
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	})
}

func BenchmarkPage(b *testing.B) {
	benchmarkOnBoth(b, func(b *testing.B, s *Store) {
		w := written(b, s, final(benchmarkedRows))
		b.ResetTimer()
		for b.Loop() {
			_, err := s.Rows(b.Context(), w.ID, benchmarkedRows/2, benchmarkedRows/2+99)
			require.NoError(b, err)
		}
	})
}

func BenchmarkPlaceOfScore(b *testing.B) {
	benchmarkOnBoth(b, func(b *testing.B, s *Store) {
		w := written(b, s, final(benchmarkedRows))
		b.ResetTimer()
		for b.Loop() {
			_, err := s.PlaceOfScore(b.Context(), w.ID, benchmarkedRows/7)
			require.NoError(b, err)
		}
	})
}

// BenchmarkLarge writes, verifies and removes one copy of STANDINGS_TEST_LARGE rows, and reports the process's
// peak memory (Linux only). It uses STANDINGS_TEST_LARGE_URL or, if that is not set, the tests' PostgreSQL. It is
// too slow to run always.
func BenchmarkLarge(b *testing.B) {
	members, err := strconv.ParseInt(os.Getenv("STANDINGS_TEST_LARGE"), 10, 64)
	if err != nil {
		b.Skip("STANDINGS_TEST_LARGE says of how many rows")
	}
	url := os.Getenv("STANDINGS_TEST_LARGE_URL")
	if url == "" {
		url = testenv.Postgres(b)
	}
	s := open(b, url)
	require.NoError(b, s.Migrate(b.Context()))
	for b.Loop() {
		used := cpuTime(url)
		took := func(what string, since time.Time) {
			now := cpuTime(url)
			b.Logf("%s: %.1f s, %.0f rows/s, %.1f s of a processor", what, time.Since(since).Seconds(), float64(members)/time.Since(since).Seconds(), (now - used).Seconds())
			used = now
		}
		start := time.Now()
		w := written(b, s, final(members))
		took("written and read again", start)
		start = time.Now()
		require.NoError(b, s.Verify(b.Context(), w.ID))
		took("verified", start)
		start = time.Now()
		_, err := s.PlaceOfScore(b.Context(), w.ID, float64(members/7))
		require.NoError(b, err)
		took("counted", start)
		start = time.Now()
		_, err = s.write.ExecContext(b.Context(), `UPDATE windows SET state = 'removing'`)
		require.NoError(b, err)
		_, err = s.Sweep(b.Context(), first)
		require.NoError(b, err)
		took("removed", start)
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(b, err)
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmHWM") {
				b.Log("most memory of this process: " + strings.TrimSpace(line))
			}
		}
	}
}
