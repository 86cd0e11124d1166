package chaos

// This file creates the archive of a mode, into which final windows are copied: a SQLite file on a small
// disk, or PostgreSQL.

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // by the name "pgx"
	_ "modernc.org/sqlite"             // by the name "sqlite"

	"github.com/standings/standings/test/testenv"
)

// The kinds of archives, and the properties that a fault may require.
const (
	onSQLite    = "SQLite"
	onSmallDisk = "SQLite on a small disk"
	onPostgres  = "PostgreSQL"
)

// diskSize is enough for the archive of a long run; while the disk is full, it occupies that much memory.
const diskSize = 128 << 20

// archive is the archive of a mode.
type archive struct {
	url      string
	driver   string                  // of database/sql
	source   string                  // data source name for driver
	disk     string                  // directory of its small disk; "": none
	postgres *testenv.PostgresServer // nil: SQLite
}

// newArchive creates an empty archive. Every other mode of a run uses PostgreSQL, depending on the seed.
// Without PostgreSQL on this machine, it uses SQLite.
func newArchive(t *testing.T, mode string, seed uint64) archive {
	t.Helper()
	place := slices.Index(strings.Split(*modes, ","), mode)
	if (seed+uint64(max(place, 0)))%2 == 0 {
		err := testenv.PostgresHere()
		if err == nil {
			server := testenv.LocalPostgres(t)
			url := server.Database(t)
			return archive{url: url, driver: "pgx", source: url, postgres: server}
		}
		fmt.Printf("%s: the archive is SQLite, there is no PostgreSQL here: %v\n", mode, err)
	}
	disk, err := testenv.SmallDisk(t, diskSize)
	dir := disk
	if err != nil {
		fmt.Printf("%s: the archive's disk doesn't become full: %v\n", mode, err)
		dir = t.TempDir()
	}
	path := filepath.Join(dir, "archive.db")
	return archive{
		url: "sqlite:" + path, driver: "sqlite", disk: disk,
		source: "file:" + path + "?_pragma=busy_timeout(10000)&_txlock=immediate",
	}
}

// is reports whether the archive is of a kind, or has the property that a fault requires; every archive is
// of the kind "".
func (a archive) is(kind string) bool {
	switch kind {
	case onSQLite:
		return a.driver == "sqlite"
	case onSmallDisk:
		return a.disk != ""
	case onPostgres:
		return a.postgres != nil
	}
	return true
}

func (a archive) String() string {
	switch {
	case a.postgres != nil:
		return onPostgres
	case a.disk != "":
		return onSmallDisk
	}
	return onSQLite
}

func (a archive) open() (*sql.DB, error) {
	db, err := sql.Open(a.driver, a.source)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	return db, nil
}
