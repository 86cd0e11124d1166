//go:build !nodocker

// Package containers starts servers for tests in containers, with testcontainers. Only cmd/testenv and this
// package's tests link it; the tests of other packages use its socket (testenv/containers.go).
package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/standings/standings/test/testenv"
)

// errNotHere means that this machine has no daemon or no image.
var errNotHere = errors.New("not on this machine")

// server is a Kafka or a Redis in a container.
type server interface {
	address() string
	name() string
	start(ctx context.Context) error // on its port, with its data
	stop() error                     // gracefully
	kill() error                     // at once
	pause() error
	resume() error
	remove() // also deletes its data
	log() string
}

// Service starts servers for this process and for its child processes.
type Service struct {
	Socket string // path of the socket

	http http.Server
	dir  string

	mu      sync.Mutex
	servers map[string]server // by path
	started int
}

// Listen starts a service. The service looks for a daemon only at the first request for a container.
func Listen(ctx context.Context) (*Service, error) {
	dir, err := os.MkdirTemp("", "standings-containers-")
	if err != nil {
		return nil, err
	}
	s := &Service{Socket: filepath.Join(dir, "socket"), dir: dir, servers: map[string]server{}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", s.Socket)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.http.Handler = s.handler()
	go func() { _ = s.http.Serve(listener) }() // until Close
	return s, nil
}

// Close ends the service and removes the containers that are left.
func (s *Service) Close() {
	_ = s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		server.remove()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *Service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /image", answered(func(r *http.Request) ([]byte, error) {
		request, err := requested(r)
		if err != nil {
			return nil, err
		}
		_, err = findImage(r.Context(), request.Image)
		return nil, err
	}))
	mux.HandleFunc("POST /kafka", answered(func(r *http.Request) ([]byte, error) {
		return s.begin(r, func(ctx context.Context, request testenv.ContainerRequest) (server, error) {
			return newKafka(ctx, request.Image, request.Settings)
		})
	}))
	mux.HandleFunc("POST /redis", answered(func(r *http.Request) ([]byte, error) {
		return s.begin(r, func(ctx context.Context, request testenv.ContainerRequest) (server, error) {
			return newRedis(ctx, request.Image, request.Args)
		})
	}))
	mux.HandleFunc("/servers/{number}/{verb}", answered(func(r *http.Request) ([]byte, error) {
		path := "/servers/" + r.PathValue("number")
		s.mu.Lock()
		server := s.servers[path]
		s.mu.Unlock()
		if server == nil {
			return nil, fmt.Errorf("no container %s", path)
		}
		if r.PathValue("verb") == "remove" {
			s.mu.Lock()
			delete(s.servers, path)
			s.mu.Unlock()
		}
		return do(r, server, r.Method+" "+r.PathValue("verb"))
	}))
	return mux
}

// answered writes the result of f; errNotHere becomes 404.
func answered(f func(*http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := f(r)
		switch {
		case errors.Is(err, errNotHere):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_, _ = w.Write(answer)
		}
	}
}

func requested(r *http.Request) (request testenv.ContainerRequest, err error) {
	return request, json.NewDecoder(r.Body).Decode(&request)
}

func (s *Service) begin(r *http.Request, start func(context.Context, testenv.ContainerRequest) (server, error)) ([]byte, error) {
	request, err := requested(r)
	if err != nil {
		return nil, err
	}
	server, err := start(r.Context(), request)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.started++
	path := "/servers/" + strconv.Itoa(s.started)
	s.servers[path] = server
	s.mu.Unlock()
	return json.Marshal(testenv.ContainerServer{Path: path, Address: server.address(), Name: server.name()})
}

func do(r *http.Request, server server, what string) ([]byte, error) {
	switch what {
	case "POST start":
		return nil, server.start(r.Context())
	case "POST stop":
		return nil, server.stop()
	case "POST kill":
		return nil, server.kill()
	case "POST pause":
		return nil, server.pause()
	case "POST resume":
		return nil, server.resume()
	case "POST remove":
		server.remove()
		return nil, nil
	case "GET log":
		return []byte(server.log()), nil
	}
	redis, ok := server.(*redisContainer)
	if !ok {
		return nil, fmt.Errorf("%s: a Kafka has no dump", what)
	}
	switch what {
	case "GET dump":
		return redis.dump()
	case "DELETE dump":
		return nil, redis.removeDump()
	case "PUT dump":
		dump, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return nil, redis.write(dumpFile, dump)
	case "POST spoil":
		return nil, redis.spoilDumps()
	}
	return nil, fmt.Errorf("no such request: %s", what)
}
