package main

// A server that does nothing but the commands that an operation needs at least: what a process
// between clients and Redis costs by itself.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
)

// serveBare answers the API's own requests with 200 and nothing, once the bare commands of the
// operation are through, until it is interrupted.
func serveBare(listen, to, board string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := redis.NewClient(&redis.Options{Addr: to})
	defer r.Close() //nolint:errcheck // the process ends
	server, err := api.Open(ctx, api.Port{
		Name: "bare port", Setting: "-listen", Listen: listen, Connections: 10_000, EndWithin: time.Second, Log: zap.NewNop(),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			of, members, err := operationOf(q)
			if err == nil {
				err = of.bare(q.Context(), r, board, members, nil)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}),
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// operationOf is what a request of the API's is about.
func operationOf(q *http.Request) (*read, []string, error) {
	name := map[string]string{"standings": "top " + q.URL.Query().Get("limit"), "around": "around", "lookup": "lookup of 50"}[path.Base(q.URL.Path)]
	members := q.URL.Query()["member"]
	switch {
	case name == "lookup of 50":
		var body struct {
			Members []string `json:"members"`
		}
		text, err := io.ReadAll(q.Body)
		if err == nil {
			err = json.Unmarshal(text, &body)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the members: %w", err)
		}
		members = body.Members
	case strings.Contains(q.URL.Path, "/members/"):
		name, members = "rank", []string{path.Base(q.URL.Path)}
	case name == "":
		return &read{bare: func(context.Context, redis.UniversalClient, string, []string, func(redis.Pipeliner)) error { return nil }}, nil, nil
	}
	for i := range reads {
		if reads[i].name == name {
			return &reads[i], members, nil
		}
	}
	return nil, nil, fmt.Errorf("%s is none of the operations", q.URL)
}
