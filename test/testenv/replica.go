package testenv

// A Redis that follows another one, which can be made to fall behind.

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Link is a way to a server that can be held up without being cut: neither side notices.
type Link struct {
	Addr string // host:port, that leads to the server

	mu    sync.Mutex
	moved *sync.Cond
	held  bool
}

// Replica starts a Redis that follows another one by a Link, and waits until it does.
func Replica(t testing.TB, of *RedisServer, args ...string) (*RedisServer, *Link) {
	t.Helper()
	l := newLink(t, of.Addr())
	host, port, _ := strings.Cut(l.Addr, ":")
	r := LocalRedis(t, append([]string{"--replicaof", host + " " + port}, args...)...)
	c := r.Client(t)
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		info, err := c.Info(t.Context(), "replication").Result()
		if strings.Contains(info, "master_link_status:up") {
			return r, l
		}
		if time.Now().After(until) {
			t.Fatalf("%s doesn't follow %s: %s %v", r, of, info, err)
		}
	}
}

func newLink(t testing.TB, to string) *Link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{Addr: listener.Addr().String()}
	l.moved = sync.NewCond(&l.mu)
	ctx, end := context.WithCancel(context.Background())
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil { // the server is away
				_ = near.Close()
				continue
			}
			closeBoth := func() { _, _ = near.Close(), far.Close() }
			stop := context.AfterFunc(ctx, closeBoth)
			for _, of := range [][2]net.Conn{{near, far}, {far, near}} {
				passing.Go(func() {
					l.pass(of[0], of[1])
					closeBoth()
					stop()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		end()
		l.Hold(false)
		passing.Wait()
	})
	return l
}

// Hold holds up what passes, or lets it go on.
func (l *Link) Hold(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = on
	l.moved.Broadcast()
}

func (l *Link) pass(to, from net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		for l.held {
			l.moved.Wait()
		}
		l.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
