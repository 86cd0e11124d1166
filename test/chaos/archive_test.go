package chaos

// The archive of a mode, that final windows are taken into: a file of SQLite on a small disk, or a
// PostgreSQL.

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

// The kinds of archives, and what a fault may need.
const (
	onSQLite    = "SQLite"
	onSmallDisk = "SQLite on a small disk"
	onPostgres  = "PostgreSQL"
)

// diskSize is room for the archive of a long run, and memory while the disk is full.
const diskSize = 128 << 20

// archive is a mode's.
type archive struct {
	url      string
	driver   string                  // of database/sql
	source   string                  // by which that opens it
	disk     string                  // the directory of its small disk; none: ""
	postgres *testenv.PostgresServer // nil: it is SQLite
}

// newArchive is an empty one. Every other mode of a run has a PostgreSQL, by the seed: where there is none on
// this machine, it goes on with SQLite.
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

// is reports whether it is of a kind, or has what a fault needs; every one is of the kind "".
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
