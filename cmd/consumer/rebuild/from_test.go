package rebuild

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

func TestARebuildBeginsAtAWordATimeOrTheOffsetsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "offsets.csv")
	require.NoError(t, os.WriteFile(file, []byte("points,0,480\r\npoints, 1, 12\n\"a.b\",2,0\n"), 0o600))
	for text, want := range map[string]replay.From{
		"":                          {From: start.FromWindow, SinceOrigin: true},
		"window":                    {From: start.FromWindow},
		"earliest":                  {From: start.FromEarliest},
		"2026-11-01T00:00:00+01:00": {From: start.FromTime, Time: time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)},
		file:                        {Offsets: map[string]int64{"points/0": 480, "points/1": 12, "a.b/2": 0}},
	} {
		got, err := parseFrom(text)
		require.NoError(t, err, "%q", text)
		require.True(t, want.Time.Equal(got.Time), "%q: %v", text, got.Time)
		want.Time, got.Time = time.Time{}, time.Time{}
		require.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{"latest", "2026-11-01", "nowhere.csv", t.TempDir()} {
		_, err := parseFrom(text)
		require.ErrorContains(t, err, text)
	}
}

func TestAFileOfOffsetsThatIsNoneSaysWhichLineIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "no line",
		"points,0":                     "line 1 has 2 fields",
		"points,0,1,2":                 "line 1 has 4 fields",
		"points,0,1\ngroup,points,0,1": "line 2 has 4 fields",
		"points,0,1\npoints,x,1":       "line 2",
		"points,-1,1":                  "no partition",
		"points,4294967296,1":          "no partition",
		",0,1":                         "is not a topic name",
		"points,0,-1":                  "no offset",
		"points,0,9223372036854775808": "no offset",
		"points,0,1\npoints,0,1":       "twice",
		"points,0,1\n\"points,1,1":     "line 2",
	} {
		_, err := readOffsets(strings.NewReader(text))
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestOffsetsComeBackFromTheirFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(
			rapid.Custom(func(t *rapid.T) string {
				return ledger.Partition{
					Topic:  rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9._-]{0,12}`).Draw(t, "topic"),
					Number: rapid.IntRange(0, 1<<31-1).Draw(t, "partition"),
				}.String()
			}),
			rapid.Int64Min(0), 1, 20).Draw(t, "offsets")
		var b strings.Builder
		for field, offset := range want {
			p, err := ledger.ParsePartition(field)
			require.NoError(t, err)
			b.WriteString(csvLine(p.Topic, p.Number, offset))
		}
		got, err := readOffsets(strings.NewReader(b.String()))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func csvLine(topic string, partition int, offset int64) string {
	return fmt.Sprintf("%s,%d,%d\n", topic, partition, offset)
}
