package testenv

// A PostgreSQL as a child process.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/internal/retry"
)

// postgresProcess is a PostgreSQL on a fixed port, with a directory that outlives the process.
type postgresProcess struct {
	programs   string // directory of initdb and postgres
	dir        string
	port       int
	settings   []string
	credential *syscall.Credential // the user that runs the server, which refuses to run as root
	process    *child.Process
}

const postgresStart = 2 * time.Minute

// findPostgres returns the directory of PostgreSQL's programs. Debian has one such directory per version; they are
// not on the PATH, but pg_lsclusters is.
func findPostgres() (string, error) {
	var dirs []string
	if _, err := exec.LookPath("pg_lsclusters"); err == nil {
		if dirs, err = filepath.Glob("/usr/lib/postgresql/*/bin"); err != nil {
			return "", err
		}
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // a name that is not a number sorts as the oldest version
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		_, initdb := os.Stat(filepath.Join(dir, "initdb"))
		_, server := os.Stat(filepath.Join(dir, "postgres"))
		if initdb == nil && server == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no initdb on the PATH, and no cluster of Debian's: %w", errNotHere)
}

func newPostgresProcess(ctx context.Context, settings []string) (*PostgresServer, error) {
	programs, err := findPostgres()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, postgresStart)
	defer cancel()
	dir, err := os.MkdirTemp("", "standings-postgres-")
	if err != nil {
		return nil, err
	}
	p := &postgresProcess{programs: programs, dir: dir, settings: settings}
	s := &PostgresServer{server: server{source: Local, close: p.remove}, process: p}
	err = p.initialize(ctx, s)
	for range 5 { // another process may take the port first
		if err != nil {
			break
		}
		if err = p.start(ctx, s); err == nil {
			return s, nil
		}
		if strings.Contains(err.Error(), "could not bind") {
			p.port, err = 0, nil
		}
	}
	p.remove()
	return nil, fmt.Errorf("start PostgreSQL: %w", cmp.Or(err, errors.New("no port is free")))
}

// initialize creates an empty cluster, whose superuser has a password.
func (p *postgresProcess) initialize(ctx context.Context, s *PostgresServer) error {
	if os.Geteuid() == 0 {
		other, err := user.Lookup("postgres")
		if err != nil {
			other, err = user.Lookup("nobody")
		}
		if err != nil {
			return err
		}
		uid, err := strconv.ParseUint(other.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(other.Gid, 10, 32)
		if err != nil {
			return err
		}
		p.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	password := rand.Text()
	file := filepath.Join(p.dir, "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		return err
	}
	for _, path := range []string{p.dir, file} {
		if err := p.give(path); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.programs, "initdb"), "-D", p.data(), "-U", "standings", "--pwfile", file,
		"-A", "scram-sha-256", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	s.url = &url.URL{Scheme: "postgres", User: url.UserPassword("standings", password), Path: "/postgres", RawQuery: "sslmode=disable"}
	return nil
}

// give makes the user that runs the server the owner of a file.
func (p *postgresProcess) give(path string) error {
	if p.credential == nil {
		return nil
	}
	return os.Chown(path, int(p.credential.Uid), int(p.credential.Gid))
}

// keep copies files into the server's directory, since the server may not be allowed to read the originals.
func (p *postgresProcess) keep(files map[string]string) error {
	for name, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		path := filepath.Join(p.dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if err := p.give(path); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgresProcess) data() string { return filepath.Join(p.dir, "data") }

func (p *postgresProcess) start(ctx context.Context, s *PostgresServer) error {
	if p.port == 0 {
		port, err := child.FreePort()
		if err != nil {
			return err
		}
		p.port = port
	}
	s.address = "127.0.0.1:" + strconv.Itoa(p.port)
	s.url.Host = s.address
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	// The shared memory is in the directory, since a killed server leaves it behind. fsync protects against crashes of the machine, which no test causes. A killed process loses nothing without it.
	args := []string{"-D", p.data(), "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "shared_buffers=64MB", "-c", "dynamic_shared_memory_type=mmap"}
	for _, setting := range p.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(filepath.Join(p.programs, "postgres"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	if p.process, err = child.Start(cmd, p.dir); err != nil {
		return err
	}
	for {
		if err = s.ask(ctx); err == nil {
			return nil
		}
		select {
		case <-p.process.Done():
			// After a kill, the shared memory of the dead server's sessions takes a moment to disappear.
			if strings.Contains(child.Tail(log.Name(), 5), "shared memory block") && retry.Sleep(ctx, 50*time.Millisecond) == nil {
				return p.start(ctx, s)
			}
			return fmt.Errorf("it ended: %w; its log ends with: %s", errors.Join(p.process.Err(), err), child.Tail(log.Name(), 5))
		default:
		}
		if retry.Sleep(ctx, 20*time.Millisecond) != nil {
			p.process.Kill()
			return fmt.Errorf("it doesn't answer: %w; its log ends with: %s", err, child.Tail(log.Name(), 5))
		}
	}
}

// remove kills the server, and deletes its directory.
func (p *postgresProcess) remove() {
	if p.process != nil {
		p.process.Kill()
	}
	_ = os.RemoveAll(p.dir) // files left in the temporary directory are harmless
}
