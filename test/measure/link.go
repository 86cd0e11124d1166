package main

// A way to Redis as over a network: on loopback a read of Redis is little more than two changes of
// process, which no network's is.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// serveLink hands on what comes to another address, each direction half a round trip later, until it
// is interrupted. Order and chunks stay as they were.
func serveLink(listen, to string, roundTrip time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", listen, err)
	}
	go func() {
		<-ctx.Done()
		_ = l.Close()
	}()
	for {
		near, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return fmt.Errorf("accept at %s: %w", listen, err)
		}
		far, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
		if err != nil {
			_ = near.Close()
			continue // whoever dialed sees it closed
		}
		go hand(far, near, roundTrip/2)
		go hand(near, far, roundTrip/2)
	}
}

// chunk is what was read at once, and when it is to be there.
type chunk struct {
	bytes []byte
	due   time.Time
}

// hand hands on what one end sends to the other, later.
func hand(to, from net.Conn, later time.Duration) {
	chunks := make(chan chunk, 1024)
	go func() {
		runtime.LockOSThread()
		exactly()
		for c := range chunks {
			sleep(time.Until(c.due))
			if _, err := to.Write(c.bytes); err != nil {
				break
			}
		}
		_, _ = to.Close(), from.Close()
		for range chunks { // until the reading side has seen it
		}
	}()
	defer close(chunks)
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if n > 0 {
			chunks <- chunk{b[:n], time.Now().Add(later)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = from.Close()
			}
			return
		}
	}
}
