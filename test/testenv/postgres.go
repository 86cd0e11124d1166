package testenv

// A PostgreSQL for tests: each test has its own database.

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresServer is a PostgreSQL that tests can use.
type PostgresServer struct {
	server

	url     *url.URL         // of a database that always exists, for a user who may create databases
	process *postgresProcess // set if the server is a local process
	test    testing.TB       // the test that owns the server, or nil
}

// Postgres returns the URL of an empty database for this test, on the server that all tests of this process
// share. Without a server, the test is reported as not run.
func Postgres(t testing.TB) string {
	t.Helper()
	if os.Getenv(DemandVariable) == "embedded" {
		NotRun(t, "no PostgreSQL: nothing stands in for one")
	}
	p, err := sharedPostgres()
	if errors.Is(err, errNotHere) {
		NotRun(t, "no PostgreSQL: "+strings.Join(reasons([]error{err}), ""))
	}
	if err != nil {
		t.Fatalf("a PostgreSQL for tests: %v", err)
	}
	return p.Database(t)
}

// LocalPostgres starts a PostgreSQL that this test alone may kill and pause, with additional settings such as
// "lock_timeout=1s". It ends with the test.
func LocalPostgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	p := local(t, "PostgreSQL", func(ctx context.Context) (*PostgresServer, error) { return newPostgresProcess(ctx, settings) })
	p.test = t
	t.Cleanup(p.close)
	return p
}

var sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) {
	d, err := demanded()
	if err != nil {
		return nil, err
	}
	demand := os.Getenv(DemandVariable)
	if demand == "containers" || demand == "environment" && os.Getenv(PostgresVariable) == "" {
		d.shared = append(d.shared, Local) // no container has one, and a given Kafka and Redis do not imply one
	}
	return choose(context.Background(), []attempt[*PostgresServer]{
		{Given, givenPostgres},
		{Local, func(ctx context.Context) (*PostgresServer, error) { return newPostgresProcess(ctx, nil) }},
	}, d.shared)
})

func givenPostgres(ctx context.Context) (*PostgresServer, error) {
	text := os.Getenv(PostgresVariable)
	if text == "" {
		return nil, fmt.Errorf("%s is not set: %w", PostgresVariable, errNotHere)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL", PostgresVariable) // the URL may contain a password
	}
	p := &PostgresServer{server: server{address: u.Host, source: Given, close: func() {}}, url: u}
	return p, p.ask(ctx)
}

// ask checks without waiting whether the server answers, and reads its version.
func (p *PostgresServer) ask(ctx context.Context) error {
	return p.admin(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version')`).Scan(&p.name)
	})
}

// admin connects to the database that always exists, and calls do.
func (p *PostgresServer) admin(ctx context.Context, do func(*pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	c, err := pgx.Connect(ctx, p.url.String())
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL at %s: %w", p.address, err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	return do(c)
}

// Database creates an empty database for this test and returns its URL. It is dropped when the test ends.
func (p *PostgresServer) Database(t testing.TB) string {
	t.Helper()
	name := Unique(t.Name())
	quoted := pgx.Identifier{name}.Sanitize()
	did(t, "make a database", p.admin(t.Context(), func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), `CREATE DATABASE `+quoted)
		return err
	}))
	t.Cleanup(func() {
		if p.test != nil {
			return // the server ends with the test
		}
		ctx := context.Background() // the test's own context has ended
		did(t, "drop a database", p.admin(ctx, func(c *pgx.Conn) error {
			_, err := c.Exec(ctx, `DROP DATABASE `+quoted+` WITH (FORCE)`)
			return err
		}))
	})
	u := *p.url
	u.Path = "/" + name
	return u.String()
}

func (p *PostgresServer) own() *postgresProcess {
	if p.test == nil {
		panic("testenv: " + p.String() + " is shared: only a LocalPostgres can be stopped")
	}
	p.test.Helper()
	return p.process
}

// Kill ends the server and all of its sessions at once, as a crash of the machine would. After a kill -9 the sessions
// would end only once they notice it, and might commit meanwhile.
func (p *PostgresServer) Kill() {
	process := p.own().process
	p.test.Helper()
	did(p.test, "kill PostgreSQL", process.Signal(syscall.SIGQUIT))
	select {
	case <-process.Done():
	case <-time.After(postgresStart):
		p.test.Fatal("PostgreSQL doesn't end")
	}
}

// Start starts a killed server again on its port. It recovers what was committed.
func (p *PostgresServer) Start() {
	process := p.own()
	p.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), postgresStart)
	defer cancel()
	did(p.test, "start PostgreSQL again", process.start(ctx, p))
}

// UseTLS makes the server also accept TLS connections, with a certificate and a key from these files. The server
// applies it shortly after UseTLS returns.
func (p *PostgresServer) UseTLS(cert, key string) {
	process := p.own()
	p.test.Helper()
	did(p.test, "have PostgreSQL use TLS", process.keep(map[string]string{"cert.pem": cert, "key.pem": key}))
	did(p.test, "have PostgreSQL use TLS", p.admin(p.test.Context(), func(c *pgx.Conn) error {
		for _, statement := range []string{
			`ALTER SYSTEM SET ssl_cert_file = '` + filepath.Join(process.dir, "cert.pem") + `'`,
			`ALTER SYSTEM SET ssl_key_file = '` + filepath.Join(process.dir, "key.pem") + `'`,
			`ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`,
		} {
			if _, err := c.Exec(p.test.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	}))
}
