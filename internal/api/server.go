// Package api serves a process's operations port: health for orchestrators and operators, and metrics.
//
//	GET /healthz   200 while the process works; 503 if only a restart helps
//	GET /readyz    200 if it does all of its work; 503 with the reasons if not; also warnings.
//	               Answers to other machines contain no addresses and paths
//	GET /metrics   for Prometheus
//
// The port opens before the process connects to Kafka or Redis, and closes after everything else has ended, so
// that operators can also see what a starting or ending process waits for. The reports come from functions that
// read memory and return at once: no request, however frequent, causes a call to Kafka or Redis.
package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Config holds what a Server reports. All fields are required.
type Config struct {
	Listen string // host:port; without a host: all addresses; port 0: any free port
	// NotReady returns the reasons why the process is not ready; none if it is ready.
	NotReady func() []Reason
	// Warnings returns the warnings of /readyz. They do not change its status.
	Warnings func() []Reason
	// Broken returns the reasons why only a restart helps; none if the process is healthy.
	Broken func() []Reason
	// EndWithin is how long Run waits at shutdown for responses in progress.
	EndWithin time.Duration
	Metrics   prometheus.Gatherer
	Log       *zap.Logger
}

// Port describes a port and its handler.
type Port struct {
	Name    string // for errors and logs, such as: operations port
	Setting string // the setting that holds the address
	Listen  string // host:port; without a host: all addresses; port 0: any free port
	Handler http.Handler
	// Guarded: if the address is a loopback address, requests must be for localhost, an IP address or one of
	// Hosts.
	Guarded bool
	Hosts   []string
	// Connections is the maximum number of open connections: see door.go.
	Connections int
	EndWithin   time.Duration // how long Run waits at shutdown for responses in progress
	Log         *zap.Logger
}

// Server is an open port. Run serves it.
type Server struct {
	name      string
	listener  net.Listener
	http      *http.Server
	endWithin time.Duration
}

// Limits on what clients may use, however slow or numerous they are.
const (
	connections = 128              // of the operations port: see door.go
	readWithin  = 10 * time.Second // from the connection's start, or from the next request's first byte
	writeWithin = 30 * time.Second
	idleFor     = 2 * time.Minute
	maxHeader   = 16 << 10
)

// Listen opens the operations port. Clients can connect at once and are answered once Run runs.
func Listen(ctx context.Context, c Config) (*Server, error) {
	return Open(ctx, Port{
		Name: "operations port", Setting: "listen", Listen: c.Listen, Handler: handler(c),
		Connections: connections, EndWithin: c.EndWithin, Log: c.Log,
	})
}

// Open opens a port. Clients can connect at once and are answered once Run runs.
func Open(ctx context.Context, p Port) (*Server, error) {
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", p.Listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: another process uses this port; set %s to a free one, or to off", err, p.Setting)
		}
		return nil, fmt.Errorf("open the %s %s: %w", p.Name, p.Listen, err)
	}
	errorLog, err := zap.NewStdLogAt(p.Log, zap.DebugLevel) // net/http reports broken connections, which need no action
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if p.Guarded && isLoopback(listener.Addr()) {
		p.Handler = guarded(p.Handler, p.Hosts)
	}
	return &Server{name: p.Name, listener: &door{Listener: listener, limit: p.Connections}, endWithin: p.EndWithin, http: &http.Server{
		Handler: whole(p.Handler), ConnContext: withVisitor,
		ReadHeaderTimeout: readWithin, ReadTimeout: readWithin, WriteTimeout: writeWithin, IdleTimeout: idleFor,
		MaxHeaderBytes: maxHeader, ErrorLog: errorLog,
	}}, nil
}

// Addr returns the address that the port listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends. It returns once all responses in progress are complete, or after EndWithin.
// If the listener fails, Run returns the error.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the %s %v: %w", s.name, s.Addr(), err)
	case <-ctx.Done():
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.endWithin)
	defer cancel()
	if s.http.Shutdown(within) != nil {
		_ = s.http.Close() // closes connections whose clients have had EndWithin to read
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the %s %v: %w", s.name, s.Addr(), err)
	}
	return nil
}
