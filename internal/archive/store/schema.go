package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations are a dialect's.
type migrations struct {
	dialect database.Dialect
	dir     string
}

var (
	sqliteMigrations   = migrations{database.DialectSQLite3, "migrations/sqlite"}
	postgresMigrations = migrations{database.DialectPostgres, "migrations/postgres"}
)

// schemaTable has which migrations were made.
const schemaTable = "standings_schema"

// Known is the version of the schema that this program reads and writes, and oldest the first version that it
// can migrate from.
const (
	Known  = 5
	oldest = 5
)

// Errors of Check.
var (
	// ErrSchemaOlder: the leader has to migrate it first.
	ErrSchemaOlder = errors.New("its schema is older than this program's, and the leader hasn't migrated it yet")
	// ErrEmpty is ErrSchemaOlder of an empty database: no copy is in it.
	ErrEmpty = fmt.Errorf("it is empty: %w", ErrSchemaOlder)
	// ErrSchemaTooOld: no migration leads from it to this program's.
	ErrSchemaTooOld = errors.New("its schema is too old for this program to migrate: set archive.url to an empty database")
	// ErrSchemaNewer: this program is too old for it.
	ErrSchemaNewer = errors.New("its schema is newer than this program's: run the version of standings that migrated it, or a later one")
)

// Check compares the schema with the one that this program knows, and writes nothing. It returns nil,
// ErrSchemaOlder (for an empty database, too, as ErrEmpty), ErrSchemaTooOld or ErrSchemaNewer.
func (s *Store) Check(ctx context.Context) error {
	version, err := s.version(ctx)
	switch {
	case err != nil:
		return s.fail(err, "read the schema's version")
	case version == 0:
		return s.fail(ErrEmpty, "schema 0")
	case version < oldest:
		return s.fail(ErrSchemaTooOld, fmt.Sprintf("schema %d, not %d", version, Known))
	case version < Known:
		return s.fail(ErrSchemaOlder, fmt.Sprintf("schema %d, not %d", version, Known))
	case version > Known:
		return s.fail(ErrSchemaNewer, fmt.Sprintf("schema %d, not %d", version, Known))
	}
	return nil
}

// version is 0 where there is no schema.
func (s *Store) version(ctx context.Context) (version int64, err error) {
	var there int64
	err = s.one(ctx, s.dialect.tableQuery(), []any{schemaTable}, &there)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	err = s.one(ctx, `SELECT coalesce(max(version_id), 0) FROM `+schemaTable+` WHERE is_applied`, nil, &version)
	return version, err
}

// Migrate brings the schema to this program's, which the leader does before it writes. Several at
// once, or one that dies midway, do no harm: each migration is a transaction. A newer schema is
// ErrSchemaNewer.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.Check(ctx); !errors.Is(err, ErrSchemaOlder) {
		return err
	}
	for {
		before, err := s.version(ctx)
		if err != nil {
			return s.fail(err, "migrate the schema")
		}
		if err = s.migrate(ctx); err == nil || s.Check(ctx) == nil {
			return nil
		}
		// If two migrate at once, one fails at a migration that the other has done, and continues with the next. A
		// lock would not help: PostgreSQL's belongs to a session, and a pool may change that with each statement.
		if now, unknown := s.version(ctx); unknown != nil || now == before {
			return s.fail(err, "migrate the schema")
		}
	}
}

func (s *Store) migrate(ctx context.Context) error {
	m := s.dialect.migrations()
	dir, err := fs.Sub(migrationFiles, m.dir)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(m.dialect, s.write, dir,
		goose.WithTableName(schemaTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx) // its Close would close the store's connections
	return err
}

// instant is a time as a column has it: a timestamptz, Unix ms, or null.
type instant struct { //nolint:recvcheck // Scan changes it, time is for any value
	ms   int64
	null bool
}

// Scan reads it from a row.
func (i *instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i = instant{null: true}
	case int64:
		*i = instant{ms: v}
	default:
		var t sql.NullTime
		if err := t.Scan(value); err != nil {
			return err
		}
		*i = instant{ms: t.Time.UnixMilli()}
	}
	return nil
}
