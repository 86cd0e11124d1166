package testenv

// A PgBouncer as a child process.

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/embedded/child"
)

const pgBouncerStart = 30 * time.Second

// PgBouncer returns the URL of the database behind a pool in transaction mode. The pool has the given number of
// server sessions; each transaction, and each statement outside of a transaction, gets a free session. PgBouncer
// ends with the test.
func PgBouncer(t testing.TB, database string, sessions int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		NotRun(t, "no PgBouncer: no pgbouncer on the PATH")
	}
	server, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	password, _ := server.User.Password()
	settings := fmt.Sprintf(`[databases]
archive = host=%s port=%s dbname=%s user=%s password='%s'

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
server_tls_sslmode = disable
`, server.Hostname(), server.Port(), strings.TrimPrefix(server.Path, "/"), server.User.Username(), password, port, sessions)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		args = append([]string{"-u", "postgres"}, args...)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	process, err := child.Start(cmd, dir)
	if err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	t.Cleanup(process.Kill)
	address := "127.0.0.1:" + strconv.Itoa(port)
	for until := time.Now().Add(pgBouncerStart); ; {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatalf("PgBouncer doesn't answer: %v; its log ends with: %s", err, child.Tail(log.Name(), 5))
		}
		time.Sleep(20 * time.Millisecond)
	}
	return (&url.URL{Scheme: "postgres", User: url.User("standings"), Host: address, Path: "/archive", RawQuery: "sslmode=disable"}).String()
}
