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

// postgres has the limits of a transaction that writes, by the server, which holds to them where
// this process is paused or gone.
type postgres struct {
	statement time.Duration
	lock      time.Duration // longer than idle: whoever waits for a paused leader outlasts it
	idle      time.Duration // between two statements of a transaction
	long      time.Duration // a statement over all rows of a copy, and a pause while they are sorted
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
	// No named prepared statements: a pool of transactions between (PgBouncer) may have another session for each
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

// describe is a URL as it may be shown, and what of it is secret.
func describe(text string) (name string, secrets []string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		// Its message has the URL in it.
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

// hide is an error's text without what is secret in it.
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

// begin has the server hold to the limits. They are the transaction's, and not the connection's: a
// pool between keeps neither apart.
func (p postgres) begin(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
		set_config('idle_in_transaction_session_timeout', $3, true)`, ms(p.statement), ms(p.lock), ms(p.idle))
	return err
}

func (p postgres) takesLong(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT set_config('statement_timeout', $1, true)`, ms(p.long))
	return err
}

// filled: autovacuum comes within a minute or so, and until then a page of members that were all written at
// once is read by going through all of them. Whoever may only write isn't allowed to, which is a warning.
func (p postgres) filled(ctx context.Context, s *Store) {
	ctx, cancel := context.WithTimeout(ctx, p.idle)
	defer cancel()
	_, _ = s.write.ExecContext(ctx, `ANALYZE members`) // autovacuum does it otherwise
}

func ms(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func (postgres) at(ms int64) any { return time.UnixMilli(ms).UTC() }

func (postgres) tableQuery() string {
	return `SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass($1)`
}

func (postgres) migrations() migrations { return postgresMigrations }

// insert copies. That none of the rows is there is known by the window's count, which the same
// transaction has read and writes: what is there nevertheless was written by nobody of ours, and
// fails.
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
