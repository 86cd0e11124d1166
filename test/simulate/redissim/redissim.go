// Package redissim is a Redis in memory for simulated worlds: the commands that the
// consumer sends, its own Lua scripts run as Redis runs them, and every way of going
// wrong that a driver wants at a moment of its choosing.
//
//	client ─▶ go-redis ─▶ net.Pipe ─▶ Hook ─▶ Command.Execute ─▶ keys
//	                                   │
//	                                   └ when, with which fault, and whether
//	                                     the answer arrives
//
// Nothing in it knows the time but by a function, starts a timer, touches the network
// or depends on a map's order, so that it can live in a bubble of testing/synctest and
// a world of one seed is the same world every time. What it answers is compared with a
// real server's by its tests.
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

// Server is one Redis. It is safe for concurrent use; commands are executed one at a
// time.
type Server struct {
	// Hook decides about every command. It is called in the goroutine of the command's
	// connection, which it may hold for as long as it likes. nil executes at once.
	Hook func(*Command) Answer
	// Refuse is asked before a connection opens; its error is the dialer's. nil lets
	// all in.
	Refuse func(from string) error
	// Rewrite gives the text that is run in place of a script: a broken one, to see
	// who notices. nil runs it as it is.
	Rewrite func(source string) string
	// Policy is the maxmemory-policy that INFO tells; noeviction at first.
	Policy string

	now func() time.Time

	mu      sync.Mutex
	keys    map[string]*value
	scripts map[string]string // loaded, by SHA-1
	names   map[string]string // of scripts that were ever sent, by SHA-1
	conns   map[*session]net.Conn
	dialled map[string]int // connections so far, by who
	process process
	scans   int
	serving sync.WaitGroup
}

// New makes an empty server whose clock is now.
func New(now func() time.Time) *Server {
	return &Server{
		Policy: "noeviction", now: now,
		keys: map[string]*value{}, scripts: map[string]string{}, names: map[string]string{},
		conns: map[*session]net.Conn{}, dialled: map[string]int{},
	}
}

// Command is what a connection has sent.
type Command struct {
	From string // who dialled
	Conn int    // the number of the connection among theirs, from 1
	Args []string

	server  *Server
	session *session
}

// Answer is what comes of a command on its connection.
type Answer struct {
	Reply any
	Lost  bool // nothing is sent, and the connection stays open
	Cut   bool // nothing is sent, and the connection is closed
}

// session is a connection as the server knows it.
type session struct {
	from   string
	number int
	proto  int // RESP version
	conn   net.Conn
}

// Dialer is how somebody reaches the server, as go-redis takes it.
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

// clientConn fails as a connection of the network does.
type clientConn struct{ net.Conn }

func (c clientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return n, err
}

// Deadlines can be set on a connection that the other side has closed: what is read
// or written next fails.
func (c clientConn) SetDeadline(t time.Time) error      { return stillOpen(c.Conn.SetDeadline(t)) }
func (c clientConn) SetReadDeadline(t time.Time) error  { return stillOpen(c.Conn.SetReadDeadline(t)) }
func (c clientConn) SetWriteDeadline(t time.Time) error { return stillOpen(c.Conn.SetWriteDeadline(t)) }

func stillOpen(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// buffers are large enough for whatever a client sends in one go: net.Pipe holds the
// client until the server has read it.
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

// Cut closes the connections of somebody, or all where from is empty, and returns how
// many there were. A command that the hook holds can still be executed.
func (s *Server) Cut(from string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*session
	for c := range s.conns {
		if from == "" || c.from == from {
			all = append(all, c)
		}
	}
	// In an order of its own, not the map's: who notices first is no chance.
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.number, b.number))
	})
	for _, c := range all {
		_ = s.conns[c].Close()
	}
	return len(all)
}

// Close cuts all connections and waits until their goroutines have ended: whatever the
// hook holds has to be let go of.
func (s *Server) Close() {
	s.Cut("")
	s.serving.Wait()
}

// Name is the command in capitals; of a script, the script's name (apply.lua), or
// "EVALSHA" where this server was never sent it.
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

// nameOf is the first word of a script that begins with a comment.
func nameOf(source string) string {
	if rest, ok := strings.CutPrefix(source, "-- "); ok {
		word, _, _ := strings.Cut(rest, " ")
		return word
	}
	return "EVAL"
}

// Waited reports whether the client has its connection open still. A client that has given up a command closes it.
func (c *Command) Waited() bool { return c.session.conn.SetWriteDeadline(time.Time{}) == nil }

func (c *Command) String() string {
	return fmt.Sprintf("%s:%d %s", c.From, c.Conn, strings.Join(c.Args, " "))
}
