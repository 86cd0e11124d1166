// Package redissim is an in-memory Redis for simulations: it has the commands that the consumer sends, runs the
// consumer's Lua scripts as Redis does, and fails in every way at moments that a driver chooses.
//
//	client ─▶ go-redis ─▶ net.Pipe ─▶ Hook ─▶ Command.Execute ─▶ keys
//	                                   │
//	                                   └ when, with which fault, and whether
//	                                     the answer arrives
//
// The package reads the time only through a function, starts no timers, does not use the network and does not
// depend on the order of maps. It can therefore run in a testing/synctest bubble, and a seed always gives the same
// simulation. Its tests compare its answers with those of a real server.
package redissim

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is one Redis. It is safe for concurrent use and executes one command at a time.
type Server struct {
	// Hook decides what happens to each command. The server calls it in the goroutine of the command's
	// connection, which it may block for any time. If it is nil, commands are executed at once.
	Hook func(*Command) Answer
	// Refuse is called before a connection opens; its error becomes the dialer's. If it is nil, all
	// connections are accepted.
	Refuse func(from string) error
	// Rewrite returns the text to run in place of a script: a broken one, to verify that a test detects
	// it. If it is nil, scripts run unchanged.
	Rewrite func(source string) string
	// Policy is the maxmemory-policy in INFO; initially noeviction.
	Policy string

	now func() time.Time

	mu      sync.Mutex
	keys    map[string]*value
	scripts map[string]string // loaded, by SHA-1
	names   map[string]string // names of all scripts that were ever sent, by SHA-1
	conns   map[*session]net.Conn
	dialled map[string]int // connections so far, by client
	process process
	scans   int
	serving sync.WaitGroup
}

// New returns an empty server with the clock now.
func New(now func() time.Time) *Server {
	return &Server{
		Policy: "noeviction", now: now,
		keys: map[string]*value{}, scripts: map[string]string{}, names: map[string]string{},
		conns: map[*session]net.Conn{}, dialled: map[string]int{},
	}
}

// Command is a command that a connection has sent.
type Command struct {
	From string // the client that dialled
	Conn int    // number of the connection among the client's, from 1
	Args []string

	server  *Server
	session *session
}

// Answer is what happens to a command on its connection.
type Answer struct {
	Reply any
	Lost  bool // nothing is sent, and the connection stays open
	Cut   bool // nothing is sent, and the connection is closed
}

// session is the server's side of a connection.
type session struct {
	from   string
	number int
	proto  int // RESP version
	conn   net.Conn
}

// Dialer returns a function for go-redis that connects the client named from to the server.
func (s *Server) Dialer(from string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		if s.Refuse != nil {
			if err := s.Refuse(from); err != nil {
				return nil, err
			}
		}
		client, server := net.Pipe()
		c := s.open(from, server)
		s.serving.Go(func() { s.serve(c, server) })
		return clientConn{client}, nil
	}
}

// clientConn returns the errors of a network connection.
type clientConn struct{ net.Conn }

func (c clientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return n, err
}

// Deadlines can be set on a connection that the other side has closed; the next read or write
// fails.
func (c clientConn) SetDeadline(t time.Time) error      { return stillOpen(c.Conn.SetDeadline(t)) }
func (c clientConn) SetReadDeadline(t time.Time) error  { return stillOpen(c.Conn.SetReadDeadline(t)) }
func (c clientConn) SetWriteDeadline(t time.Time) error { return stillOpen(c.Conn.SetWriteDeadline(t)) }

func stillOpen(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// buffers are large enough for everything that a client sends at once: net.Pipe blocks the client until the
// server has read it.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// ServeConn serves a connection until it ends or is cut, and closes it.
func (s *Server) ServeConn(from string, conn net.Conn) {
	s.serve(s.open(from, conn), conn)
}

func (s *Server) serve(c *session, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // it has nothing to say
	defer s.shut(c)
	r := buffers.Get().(*bufio.Reader)
	r.Reset(conn)
	defer buffers.Put(r)
	var out []byte
	for {
		args, err := readCommand(r)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, net.ErrClosed) {
				_, _ = conn.Write(appendReply(nil, Error("ERR Protocol error: "+err.Error()), 2))
			}
			return
		}
		answer := s.decide(&Command{From: c.from, Conn: c.number, Args: args, server: s, session: c})
		if answer.Cut {
			return
		}
		if answer.Lost {
			continue
		}
		out = appendReply(out[:0], answer.Reply, c.proto)
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

func (s *Server) decide(c *Command) Answer {
	if s.Hook == nil {
		return Answer{Reply: c.Execute(Fault{}).Reply}
	}
	return s.Hook(c)
}

func (s *Server) open(from string, conn net.Conn) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialled[from]++
	c := &session{from: from, number: s.dialled[from], proto: 2, conn: conn}
	s.conns[c] = conn
	return c
}

func (s *Server) shut(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Cut closes the connections of a client, or all if from is "", and returns their number. A command that the
// hook blocks can still be executed.
func (s *Server) Cut(from string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*session
	for c := range s.conns {
		if from == "" || c.from == from {
			all = append(all, c)
		}
	}
	// In a fixed order instead of the map's, so that it does not depend on chance which client notices first.
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.number, b.number))
	})
	for _, c := range all {
		_ = s.conns[c].Close()
	}
	return len(all)
}

// Close cuts all connections and waits until their goroutines have ended. The hook must not block any command.
func (s *Server) Close() {
	s.Cut("")
	s.serving.Wait()
}

// Name returns the command in capitals. For a script it returns the script's name (apply.lua), or "EVALSHA" if
// this server was never sent the script.
func (c *Command) Name() string {
	if len(c.Args) == 0 {
		return ""
	}
	name := strings.ToUpper(c.Args[0])
	if len(c.Args) < 2 {
		return name
	}
	switch name {
	case "EVAL":
		return nameOf(c.Args[1])
	case "EVALSHA":
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		if known := c.server.names[c.Args[1]]; known != "" {
			return known
		}
	}
	return name
}

// nameOf returns the first word of a script's opening comment.
func nameOf(source string) string {
	if rest, ok := strings.CutPrefix(source, "-- "); ok {
		word, _, _ := strings.Cut(rest, " ")
		return word
	}
	return "EVAL"
}

// Waited reports whether the client still has its connection open. A client that has given up a command closes it.
func (c *Command) Waited() bool { return c.session.conn.SetWriteDeadline(time.Time{}) == nil }

func (c *Command) String() string {
	return fmt.Sprintf("%s:%d %s", c.From, c.Conn, strings.Join(c.Args, " "))
}
