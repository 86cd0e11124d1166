package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgres has the time limits of a writing transaction. The server enforces them even if this process is paused
// or gone.
type postgres struct {
	statement time.Duration
	lock      time.Duration // longer than idle, so that a transaction outlasts a paused leader that it waits for
	idle      time.Duration // between two statements of a transaction
	long      time.Duration // for a statement over all rows of a copy
}

var postgresLimits = postgres{statement: time.Minute, lock: time.Minute, idle: 30 * time.Second, long: 30 * time.Minute}

const connectLimit = 10 * time.Second

func openPostgres(ctx context.Context, text string) (*Store, error) {
	name, secrets, err := describe(text)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%w: archive %s: %s", ErrInvalid, name, hide(err, secrets))
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectLimit
	}
	if _, given := config.ConnConfig.RuntimeParams["application_name"]; !given {
		config.ConnConfig.RuntimeParams["application_name"] = "standings"
	}
	// No named prepared statements: a pooler in transaction mode (PgBouncer) may use another session for each
	// statement. Only descriptions of statements are cached.
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("archive %s: %s", name, hide(err, secrets))
	}
	db := stdlib.OpenDBFromPool(pool)
	s := &Store{dialect: postgresLimits, name: name, read: db, write: db, removedAtOnce: removedAtOnce, close: func() error {
		err := db.Close()
		pool.Close()
		return err
	}}
	var encoding string
	if err := s.one(ctx, `SHOW server_encoding`, nil, &encoding); err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s: %w", name, err), s.close())
	}
	if encoding != "UTF8" {
		return nil, errors.Join(fmt.Errorf("archive %s: its encoding is %s, and members' ids need UTF8", name, encoding), s.close())
	}
	return s, nil
}

// describe returns a URL as it may be shown, and its secrets.
func describe(text string) (name string, secrets []string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		// The parser's message contains the URL.
		return "", nil, fmt.Errorf("%w: the archive's URL can't be read; special characters of a password are written as %%XX", ErrInvalid)
	}
	if password, ok := u.User.Password(); ok {
		_, raw, _ := strings.Cut(u.User.String(), ":")
		secrets = append(secrets, password, raw)
	}
	query := u.Query()
	for _, key := range []string{"password", "sslpassword"} {
		secrets = append(secrets, query[key]...)
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if user := u.User.Username(); user != "" {
		shown.User = url.User(user)
	}
	return shown.String(), secrets, nil
}

// hide returns an error's text without the secrets.
func hide(err error, secrets []string) string {
	text := err.Error()
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

func (postgres) options() *sql.TxOptions { return &sql.TxOptions{Isolation: sql.LevelReadCommitted} }

// begin sets the server's limits for the transaction. They are not set for the connection, since a pooler may
// share that with other clients.
func (p postgres) begin(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
		set_config('idle_in_transaction_session_timeout', $3, true)`, ms(p.statement), ms(p.lock), ms(p.idle))
	return err
}

func (p postgres) takesLong(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT set_config('statement_timeout', $1, true)`, ms(p.long))
	return err
}

// filled updates the statistics. Autovacuum does so only after a minute or so; until then PostgreSQL may read all
// members of a new copy to get one page. A role that is not allowed to gets a warning.
func (p postgres) filled(ctx context.Context, s *Store) {
	ctx, cancel := context.WithTimeout(ctx, p.idle)
	defer cancel()
	_, _ = s.write.ExecContext(ctx, `ANALYZE members`) // on an error, autovacuum does it later
}

func ms(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func (postgres) at(ms int64) any { return time.UnixMilli(ms).UTC() }

func (postgres) tableQuery() string {
	return `SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass($1)`
}

func (postgres) migrations() migrations { return postgresMigrations }

// insert copies the rows with COPY. The same transaction has read and updated the window's row count, so none of
// these rows exists. If one does, this program did not write it, and the insert fails.
func (postgres) insert(ctx context.Context, conn *sql.Conn, _ *sql.Tx, window int64, fields []string, rows []Row) error {
	return conn.Raw(func(c any) error {
		copied, ok := c.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("a connection of another driver: %T", c)
		}
		columns := []string{"window_id", "place", "rank", "member", "points", "fields", "score", "reached_at"}
		_, err := copied.Conn().CopyFrom(ctx, pgx.Identifier{"standings"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			r := &rows[i]
			points, text := r.columns(fields)
			return []any{window, r.Place, r.rank(), storedMember(r.Member), points, text, r.Score, time.UnixMilli(r.ReachedAt)}, nil
		}))
		return err
	})
}

func (postgres) repeated(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505" // unique_violation
}
