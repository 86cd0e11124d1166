package embedded

// A real redis-server or valkey-server as a child process.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/internal/retry"
)

// RedisOptions describes how to start a server. Only Program is required: by default the server gets a
// directory of its own and any free port.
type RedisOptions struct {
	Program string   // path of the program
	Dir     string   // its working directory, which Close keeps; empty: a temporary one, which Close removes
	Scratch bool     // remove Dir if this process dies
	Port    int      // the port; 0: any free one
	Args    []string // additional arguments: --maxmemory 60mb
}

// RedisServer is a Redis server in a child process.
type RedisServer struct {
	Address string // 127.0.0.1:port
	Name    string // "redis-server 7.0.15"; without a version if a password hides it
	Dir     string // its working directory, with dump.rdb if there is one
	Port    int
	Process *child.Process

	temporary bool
}

const (
	redisStart = 20 * time.Second // includes loading a dump
	redisGrace = 10 * time.Second
)

// StartRedisServer starts a server, and returns when it answers and has loaded its dump. The server saves
// nothing by itself. Its maxmemory-policy is Redis's default, noeviction.
func StartRedisServer(ctx context.Context, options RedisOptions) (*RedisServer, error) {
	s := &RedisServer{Dir: options.Dir, Port: options.Port}
	if s.Dir == "" {
		dir, err := os.MkdirTemp("", "standings-redis-")
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", options.Program, err)
		}
		s.Dir, s.temporary = dir, true
	}
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	err := s.start(ctx, options)
	// Redis cannot choose a free port, so this process chooses one, and another if a different process
	// takes it first. A given port may still be closing.
	for errors.Is(err, errPortTaken) && ctx.Err() == nil {
		if options.Port != 0 {
			_ = retry.Sleep(ctx, 50*time.Millisecond)
		}
		taken := err
		if err = s.start(ctx, options); err != nil && ctx.Err() != nil {
			err = taken // more precise than the timeout
		}
	}
	if err != nil {
		s.removeDir()
		return nil, fmt.Errorf("start %s: %w", options.Program, err)
	}
	return s, nil
}

var errPortTaken = errors.New("the port is taken")

// start makes one attempt on one port.
func (s *RedisServer) start(ctx context.Context, options RedisOptions) error {
	s.Port = options.Port
	if s.Port == 0 {
		port, err := child.FreePort()
		if err != nil {
			return err
		}
		s.Port = port
	}
	s.Address = "127.0.0.1:" + strconv.Itoa(s.Port)
	log, err := os.Create(filepath.Join(s.Dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	args := append([]string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1",
		"--dir", s.Dir, "--daemonize", "no", "--save", "", "--appendonly", "no",
	}, options.Args...)
	cmd := exec.Command(options.Program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, log, log
	scratch := ""
	if s.temporary || options.Scratch {
		scratch = s.Dir
	}
	if s.Process, err = child.Start(cmd, scratch); err != nil {
		return err
	}
	if s.Name, err = s.ready(ctx); err == nil {
		return nil
	}
	s.Process.Kill()
	text := child.Tail(log.Name(), 5)
	if strings.Contains(text, "in use") {
		return fmt.Errorf("%w: %s", errPortTaken, text)
	}
	return fmt.Errorf("%w; its log ends with: %s", err, text)
}

// ready waits until the server answers, and returns its name.
func (s *RedisServer) ready(ctx context.Context) (string, error) {
	client := redis.NewClient(&redis.Options{
		Addr: s.Address, MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		DialTimeout: time.Second, DialerRetries: 1, ReadTimeout: time.Second,
	})
	defer func() { _ = client.Close() }()
	for {
		info, err := "", s.listening()
		if err == nil {
			info, err = client.Info(ctx).Result() // Redis 6.2 accepts at most one section
		}
		if err == nil && field(info, "loading") != "1" {
			return s.named(info)
		}
		if err != nil && strings.HasPrefix(err.Error(), "NOAUTH") {
			return "redis", nil // its arguments set a password, which is not known here
		}
		select {
		case <-s.Process.Done():
			return "", fmt.Errorf("it ended: %w", errors.Join(s.Process.Err(), err))
		case <-ctx.Done():
			return "", fmt.Errorf("it doesn't answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// listening avoids log lines: go-redis writes one for each failed dial.
func (s *RedisServer) listening() error {
	connection, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return err
	}
	return connection.Close()
}

// named returns the server's name if the server is this child. If another process took the port first, its
// server answers until the child notices that the port is taken.
func (s *RedisServer) named(info string) (string, error) {
	if field(info, "process_id") != strconv.Itoa(s.Process.Pid()) {
		return "", errPortTaken
	}
	return RedisName(info), nil
}

// RedisName reads a server's name and version from its INFO server.
func RedisName(info string) string {
	if v := field(info, "valkey_version"); v != "" {
		return "valkey-server " + v
	}
	if v := field(info, "redis_version"); v != "" {
		return "redis-server " + v
	}
	return Miniredis
}

// field returns the value of a line "name:value" of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Close ends the server, and removes its directory if it is temporary.
func (s *RedisServer) Close() {
	s.Process.Stop(redisGrace)
	s.removeDir()
}

func (s *RedisServer) removeDir() {
	if s.temporary {
		_ = os.RemoveAll(s.Dir) // a leftover in the temporary directory is harmless
	}
}
