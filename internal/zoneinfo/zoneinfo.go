// Package zoneinfo loads time zones from the newest data there are: the system's, or those that
// the program contains.
//
// Governments change time zone rules at short notice. The program's data are as old as its
// release, and the system's may be newer or older, or missing, as in an empty container. Go's
// package time prefers the system's data, however old they are.
package zoneinfo

import (
	"archive/zip"
	"bufio"
	"bytes"
	_ "embed" // the program's data
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// embedded is written by scripts/zoneinfo.
//
//go:embed zoneinfo.zip
var embedded []byte

// Embedded is the Source of the data that the program contains.
const Embedded = "embedded"

// systemDirs are where operating systems keep their data.
var systemDirs = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

// Data is one release of the time zone database.
type Data struct {
	// Version is IANA's, such as 2026f.
	Version string
	// Source is a directory, or Embedded.
	Source string

	files  fs.FS
	others *Data // have zones that these data lack; nil: none
}

// Current returns the newest data, which Load uses. It chooses them once.
var Current = sync.OnceValue(func() *Data { return newest(systemDirs) })

// Load returns a time zone by its IANA name, from the current data.
func Load(name string) (*time.Location, error) { return Current().Load(name) }

// newest returns the program's data, or a directory's data if their version is later. Data without
// a version serve only the zones that the program's data lack.
func newest(dirs []string) *Data {
	best := ofProgram()
	for _, dir := range dirs {
		files := os.DirFS(dir)
		if _, err := fs.Stat(files, "."); err != nil {
			continue
		}
		d := &Data{Version: versionOf(files), Source: dir, files: files}
		if d.Version > best.Version {
			d.others = best
			return d
		}
		best.others = d
		return best
	}
	return best
}

func ofProgram() *Data {
	files, err := zip.NewReader(bytes.NewReader(embedded), int64(len(embedded)))
	if err != nil {
		panic(fmt.Errorf("the embedded time zone data: %w", err)) // a test reads them
	}
	version, err := fs.ReadFile(files, "version")
	if err != nil {
		panic(fmt.Errorf("the embedded time zone data: %w", err))
	}
	return &Data{Version: string(version), Source: Embedded, files: files}
}

// versionOf is the version of a directory's data, empty if it is unknown. Linux distributions
// have it in the first line of tzdata.zi, BSD and macOS in +VERSION.
func versionOf(files fs.FS) string {
	if text, err := fs.ReadFile(files, "+VERSION"); err == nil {
		return clean(string(text))
	}
	f, err := files.Open("tzdata.zi")
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it is only read
	line, _ := bufio.NewReader(f).ReadString('\n')
	version, ok := strings.CutPrefix(line, "# version ")
	if !ok {
		return ""
	}
	return clean(version)
}

// clean is a version without what a distribution adds to it. Versions sort as texts: 2025c,
// 2026a, 2026f.
func clean(version string) string {
	version = strings.TrimSpace(version)
	if i := strings.IndexAny(version, "-_ \n"); i >= 0 {
		version = version[:i]
	}
	if len(version) < 5 || strings.Trim(version[:4], "0123456789") != "" {
		return ""
	}
	return version
}

// Load returns a time zone by its IANA name.
func (d *Data) Load(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	if name != path.Clean(name) || !fs.ValidPath(name) || strings.Contains(name, `\`) || name == "." {
		return nil, fmt.Errorf("unknown time zone %.40s", name)
	}
	data, err := fs.ReadFile(d.files, name)
	if err != nil {
		if d.others != nil {
			return d.others.Load(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("unknown time zone %.40s", name)
		}
		return nil, fmt.Errorf("read time zone %s: %w", name, err)
	}
	loc, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("time zone %s: %w", name, err)
	}
	return loc, nil
}

// String is the version and the source.
func (d *Data) String() string {
	if d.Source == Embedded {
		return d.Version + " (embedded in the program)"
	}
	return fmt.Sprintf("%s (%s)", d.Version, d.Source)
}
