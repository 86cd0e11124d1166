package store

// Rows of a window that is read while it changes come in no order, and some of them twice: they are
// put in the order of ranks by the database, in tables that nobody else sees and that go by themselves.
// So the process's memory stays flat, and what is sorted is where the copy is going to be.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Scored is a member and its score, as Redis has them.
type Scored struct {
	Member string
	Score  float64 // finite
}

// Sorter puts members in the order of ranks: by score, and of equal scores by id, both descending. It is
// used by one goroutine: Add, then Sort, then Each as often as is wanted.
type Sorter struct {
	store *Store
	into  sorting
	next  int64
	sort  bool
	count int64
}

// sorting is a database for what is sorted.
type sorting interface {
	add(ctx context.Context, part, first int64, some []Scored) error
	execute(ctx context.Context, statement string, args ...any) error
	querier
	close() error
}

// Sorter begins to sort. It needs no lead, as nobody sees what it writes.
func (s *Store) Sorter(ctx context.Context) (*Sorter, error) {
	into, err := s.dialect.sorter(ctx, s)
	if err != nil {
		return nil, s.fail(err, "begin to sort standings")
	}
	return &Sorter{store: s, into: into}, nil
}

// Close lets go of what was sorted.
func (s *Sorter) Close() { _ = s.into.close() } // what it had is of no use any more

// Add adds members of a part of the window. Of one that comes several times the last counts.
func (s *Sorter) Add(ctx context.Context, part int, some []Scored) error {
	if len(some) == 0 {
		return nil
	}
	err := s.into.add(ctx, int64(part), s.next, some)
	s.next += int64(len(some))
	return s.store.fail(err, "sort standings")
}

// Drop takes away what was added of a part.
func (s *Sorter) Drop(ctx context.Context, part int) error {
	return s.store.fail(s.into.execute(ctx, `DELETE FROM scanned WHERE part = $1`, int64(part)), "sort standings")
}

// Sort gives ranks, and returns how many members there are.
func (s *Sorter) Sort(ctx context.Context) (int64, error) {
	err := s.ranks(ctx)
	return s.count, s.store.fail(err, "sort standings")
}

func (s *Sorter) ranks(ctx context.Context) error {
	if s.sort {
		return fmt.Errorf("%w: they are sorted already", ErrInvalid)
	}
	s.sort = true
	if err := s.into.execute(ctx, `INSERT INTO sorted (rank, member, score)
		SELECT row_number() OVER (ORDER BY score DESC, member DESC), member, score FROM (
			SELECT member, score, row_number() OVER (PARTITION BY member ORDER BY n DESC) AS again FROM scanned) AS scans
		WHERE again = 1 ORDER BY score DESC, member DESC`); err != nil {
		return err
	}
	rows, err := s.into.QueryContext(ctx, `SELECT coalesce(max(rank), 0) FROM sorted`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err says what there is to say
	for rows.Next() {
		if err := rows.Scan(&s.count); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Each calls do for every member by rank, from 1, some thousand a query.
func (s *Sorter) Each(ctx context.Context, do func(rank int64, m *Scored) error) error {
	page := make([]Scored, 0, min(s.count, readAtOnce))
	for next := int64(1); next <= s.count; {
		var err error
		if page, err = s.page(ctx, next, page[:0]); err != nil {
			return s.store.fail(err, "read sorted standings")
		}
		for i := range page {
			if err := do(next, &page[i]); err != nil {
				return err
			}
			next++
		}
	}
	return nil
}

// page reads the ranks from one on, of which none may be missing.
func (s *Sorter) page(ctx context.Context, first int64, page []Scored) ([]Scored, error) {
	rows, err := s.into.QueryContext(ctx, `SELECT rank, member, score FROM sorted WHERE rank >= $1 AND rank < $2 ORDER BY rank`, first, first+readAtOnce)
	if err != nil {
		return page, err
	}
	defer func() { _ = rows.Close() }() // Err says what there is to say
	for rows.Next() {
		var rank int64
		var member []byte
		var m Scored
		if err := rows.Scan(&rank, &member, &m.Score); err != nil {
			return page, err
		}
		if rank != first+int64(len(page)) {
			return page, fmt.Errorf("%w: the rank %d is missing", ErrDiffers, first+int64(len(page)))
		}
		m.Member = string(member)
		page = append(page, m)
	}
	if err := rows.Err(); err != nil {
		return page, err
	}
	if want := min(s.count-first+1, readAtOnce); int64(len(page)) != want {
		return page, fmt.Errorf("%w: of %d ranks from %d on there are %d", ErrDiffers, want, first, len(page))
	}
	return page, nil
}

// An id is compared as bytes, as Redis does: text would have escapes, and an order of its own.
var sortTables = []string{
	`CREATE TEMPORARY TABLE scanned (part bigint NOT NULL, n bigint NOT NULL, member %s NOT NULL, score double precision NOT NULL)%s`,
	`CREATE TEMPORARY TABLE sorted (rank bigint PRIMARY KEY, member %s NOT NULL, score double precision NOT NULL)%s`,
}

// postgresSorting is a transaction, at whose end the tables go: a pool between keeps a connection for no
// longer. It has no lock that anybody waits for.
type postgresSorting struct {
	*sql.Tx
	conn *sql.Conn
}

func (p postgres) sorter(ctx context.Context, s *Store) (_ sorting, err error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	// Not by the caller's context: database/sql would roll back as it ends, while a query goes on.
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), p.options())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	sorter := &postgresSorting{tx, conn}
	// A leader that is paused has its transaction ended by the server, in a while.
	statements := []string{`SELECT set_config('statement_timeout', '` + ms(p.long) + `', true), set_config('idle_in_transaction_session_timeout', '` + ms(p.long) + `', true)`}
	for _, table := range sortTables {
		statements = append(statements, fmt.Sprintf(table, "bytea", " ON COMMIT DROP"))
	}
	for _, statement := range statements {
		if err := sorter.execute(ctx, statement); err != nil {
			return nil, errors.Join(err, sorter.close())
		}
	}
	return sorter, nil
}

func (p *postgresSorting) execute(ctx context.Context, statement string, args ...any) error {
	_, err := p.ExecContext(ctx, statement, args...)
	return err
}

func (p *postgresSorting) add(ctx context.Context, part, first int64, some []Scored) error {
	return p.conn.Raw(func(c any) error {
		copied, ok := c.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("a connection of another driver: %T", c)
		}
		_, err := copied.Conn().CopyFrom(ctx, pgx.Identifier{"scanned"}, []string{"part", "n", "member", "score"}, pgx.CopyFromSlice(len(some), func(i int) ([]any, error) {
			return []any{part, first + int64(i), []byte(some[i].Member), some[i].Score}, nil
		}))
		return err
	})
}

func (p *postgresSorting) close() error { return errors.Join(p.Rollback(), p.conn.Close()) }

// sqliteSorting is a database of its own, in a file beside the archive's: there is room there, which may be
// nowhere else in a container. The file is removed as soon as it is open, so that nothing stays of it
// whatever becomes of the process. One transaction is over all of it.
type sqliteSorting struct {
	*sql.Tx
	db *sql.DB
}

func (sqlite) sorter(ctx context.Context, s *Store) (sorting, error) {
	archive := strings.TrimPrefix(s.name, "sqlite:")
	file, err := os.CreateTemp(filepath.Dir(archive), "."+filepath.Base(archive)+"-sorting-*")
	if err != nil {
		return nil, fmt.Errorf("a file to sort in: %w", err)
	}
	path := file.Name()
	defer os.Remove(path) //nolint:errcheck // as it is removed by name before, if all is well
	if err := file.Close(); err != nil {
		return nil, err
	}
	// Without a journal SQLite doesn't look whether the file has its name still.
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=temp_store(FILE)&_pragma=cache_size(-16384)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	sorter := &sqliteSorting{tx, db}
	for _, table := range sortTables {
		if err := sorter.execute(ctx, strings.NewReplacer("TEMPORARY ", "", "rank bigint", "rank integer").Replace(fmt.Sprintf(table, "blob", ""))); err != nil {
			return nil, errors.Join(err, sorter.close())
		}
	}
	return sorter, nil
}

func (s *sqliteSorting) execute(ctx context.Context, statement string, args ...any) error {
	_, err := s.ExecContext(ctx, statement, args...)
	return err
}

func (s *sqliteSorting) add(ctx context.Context, part, first int64, some []Scored) error {
	const into = "INSERT INTO scanned (part, n, member, score) VALUES "
	args := make([]any, 0, 4*insertedAtOnce)
	for len(some) > 0 {
		n := min(len(some), insertedAtOnce)
		args = args[:0]
		for i := range some[:n] {
			args = append(args, part, first+int64(i), []byte(some[i].Member), some[i].Score)
		}
		if err := s.execute(ctx, into+"(?,?,?,?)"+strings.Repeat(",(?,?,?,?)", n-1), args...); err != nil {
			return err
		}
		some, first = some[n:], first+int64(n)
	}
	return nil
}

func (s *sqliteSorting) close() error { return errors.Join(s.Rollback(), s.db.Close()) }
