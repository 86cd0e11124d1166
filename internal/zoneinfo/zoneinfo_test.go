package zoneinfo

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Edmonton stops changing its clocks in 2026: in winter it is an hour ahead of older data.
func TestTheProgramHasCurrentData(t *testing.T) {
	d := newest(nil)
	require.Equal(t, Embedded, d.Source)
	require.GreaterOrEqual(t, d.Version, "2026f")
	edmonton, err := d.Load("America/Edmonton")
	require.NoError(t, err)
	require.Equal(t, "2026-12-01T06:00:00Z", time.Date(2026, 12, 1, 0, 0, 0, 0, edmonton).UTC().Format(time.RFC3339))
	for _, name := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "US/Pacific"} {
		loc, err := d.Load(name)
		require.NoError(t, err)
		require.Equal(t, name, loc.String())
	}
}

// system returns a directory of data, in which Berlin has Tokyo's clock.
func system(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	tokyo, err := fs.ReadFile(ofProgram().files, "Asia/Tokyo")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "Europe"), 0o700))
	for _, name := range []string{"Europe/Berlin", "Europe/Only"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), tokyo, 0o600))
	}
	if file != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	return dir
}

func TestTheNewestDataAreUsed(t *testing.T) {
	const tokyo, berlin = 9 * 3600, 3600
	for _, c := range []struct {
		name, file, text string
		version          string // "": the program's version
		berlin           int    // seconds
	}{
		{"a later system", "tzdata.zi", "# version 2199a\n# more", "2199a", tokyo},
		{"a later system, BSD", "+VERSION", "2199b\n", "2199b", tokyo},
		{"a later distribution", "tzdata.zi", "# version 2199a-dirty\n", "2199a", tokyo},
		{"an earlier system", "tzdata.zi", "# version 2025b\n", "", berlin},
		{"a system without a version", "", "", "", berlin},
		{"a file without a version", "tzdata.zi", "R d 1916", "", berlin},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := system(t, c.file, c.text)
			d := newest([]string{filepath.Join(dir, "missing"), dir})
			want, source := c.version, dir
			if want == "" {
				want, source = ofProgram().Version, Embedded
			}
			require.Equal(t, want, d.Version)
			require.Equal(t, source, d.Source)
			loc, err := d.Load("Europe/Berlin")
			require.NoError(t, err)
			_, offset := time.Unix(0, 0).In(loc).Zone()
			require.Equal(t, c.berlin, offset)
			_, err = d.Load("Europe/Only")
			require.NoError(t, err, "a zone that only the system has")
			_, err = d.Load("Asia/Tokyo")
			require.NoError(t, err, "a zone that only the program has")
		})
	}
}

func TestWhatIsNoZoneIsRefused(t *testing.T) {
	d := newest(systemDirs)
	for _, name := range []string{"", ".", "Europe", "Europe/Atlantis", "../zoneinfo/UTC", "/etc/localtime", `Europe\Berlin`, "version", "tzdata.zi", "Europe//Berlin"} {
		_, err := d.Load(name)
		require.Error(t, err, name)
	}
}
