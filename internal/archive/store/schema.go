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

// migrations are the migrations of one dialect.
type migrations struct {
	dialect database.Dialect
	dir     string
}

var (
	sqliteMigrations   = migrations{database.DialectSQLite3, "migrations/sqlite"}
	postgresMigrations = migrations{database.DialectPostgres, "migrations/postgres"}
)

// schemaTable records which migrations were applied.
const schemaTable = "standings_schema"

// Known is the schema version that this program reads and writes. oldest is the first version that it can migrate
// from.
const (
	Known  = 5
	oldest = 5
)

// Errors of Check.
var (
	// ErrSchemaOlder reports an older schema, which the leader must migrate first.
	ErrSchemaOlder = errors.New("its schema is older than this program's, and the leader hasn't migrated it yet")
	// ErrEmpty is the ErrSchemaOlder of an empty database, which has no copies.
	ErrEmpty = fmt.Errorf("it is empty: %w", ErrSchemaOlder)
	// ErrSchemaTooOld reports a schema from which no migration leads to this program's.
	ErrSchemaTooOld = errors.New("its schema is too old for this program to migrate: set archive.url to an empty database")
	// ErrSchemaNewer reports a schema that is too new for this program.
	ErrSchemaNewer = errors.New("its schema is newer than this program's: run the version of standings that migrated it, or a later one")
)

// Check compares the schema with this program's, and writes nothing. It returns nil, ErrSchemaOlder (as ErrEmpty
// for an empty database), ErrSchemaTooOld or ErrSchemaNewer.
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

// version returns the schema's version; 0 if there is no schema.
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

// Migrate migrates the schema to this program's version. The leader calls it before it writes. Concurrent calls
// and a crash midway do no harm, since each migration is a transaction. The error is ErrSchemaNewer for a newer
// schema.
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
		// If two processes migrate at once, one fails at a migration that the other has applied, and continues
		// with the next. A lock would not help: PostgreSQL's belong to a session, and a pooler may change the
		// session with each statement.
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

// instant is a time in a column: a timestamptz, Unix ms, or null.
type instant struct { //nolint:recvcheck // Scan changes it, time is for any value
	ms   int64
	null bool
}

// Scan implements sql.Scanner.
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
