// Package api is the HTTP side of a process: its health, for orchestrators and
// people, and its metrics.
//
//	GET /healthz   200 while the process works; 503 if only a restart helps
//	GET /readyz    200 if it does all of its work; 503 with the reasons if not; also warnings.
//	               Answers to other machines contain no addresses and paths
//	GET /metrics   for Prometheus
//
// The port is open before anything else is reached and closes after everything has
// ended, so that a wait at the start and the end can be looked at, too. What is reported
// comes from functions that answer at once, from memory: no request asks Kafka or
// Redis anything, however often it is sent.
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

// Config is what a Server shows. Every field is set.
type Config struct {
	Listen string // host:port; without a host on all addresses, port 0 is any free one
	// NotReady are the reasons for which the process isn't ready, none if it is.
	NotReady func() []Reason
	// Warnings are what /readyz shows besides, whatever it answers.
	Warnings func() []Reason
	// Broken are the reasons for which only a restart helps.
	Broken func() []Reason
	// EndWithin is how long answers under way are waited for at the end.
	EndWithin time.Duration
	Metrics   prometheus.Gatherer
	Log       *zap.Logger
}

// Port is what is listened on, and who answers there.
type Port struct {
	Name    string // in errors and logs: operations port
	Setting string // of the configuration, that says where
	Listen  string // host:port; without a host on all addresses, port 0 is any free one
	Handler http.Handler
	// Guarded: on a loopback address, requests have to be for localhost, an IP address or one of Hosts.
	Guarded bool
	Hosts   []string
	// Connections is how many there may be: see door.go.
	Connections int
	EndWithin   time.Duration // how long answers under way are waited for at the end
	Log         *zap.Logger
}

// Server is an open port. Run serves it.
type Server struct {
	name      string
	listener  net.Listener
	http      *http.Server
	endWithin time.Duration
}

// What a client may take up of the process, however slow or many they are.
const (
	connections = 128              // of the operations port: see door.go
	readWithin  = 10 * time.Second // from the connection, or the first byte of a next request
	writeWithin = 30 * time.Second
	idleFor     = 2 * time.Minute
	maxHeader   = 16 << 10
)

// Listen opens the operations port. Whoever connects is answered once Run runs.
func Listen(ctx context.Context, c Config) (*Server, error) {
	return Open(ctx, Port{
		Name: "operations port", Setting: "listen", Listen: c.Listen, Handler: handler(c),
		Connections: connections, EndWithin: c.EndWithin, Log: c.Log,
	})
}

// Open opens a port. Whoever connects is answered once Run runs.
func Open(ctx context.Context, p Port) (*Server, error) {
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", p.Listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: another process uses this port; set %s to a free one, or to off", err, p.Setting)
		}
		return nil, fmt.Errorf("open the %s %s: %w", p.Name, p.Listen, err)
	}
	errorLog, err := zap.NewStdLogAt(p.Log, zap.DebugLevel) // of broken connections: nothing to be done about
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

// Addr is the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends, and returns once every answer under way is
// through or EndWithin has passed. A port that breaks is the error.
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
		_ = s.http.Close() // whoever still reads has had the time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the %s %v: %w", s.name, s.Addr(), err)
	}
	return nil
}
