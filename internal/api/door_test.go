package api

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// opened returns the address and the door of a server whose readiness is notReady's result.
func opened(t *testing.T, notReady func() []Reason) (address string, d *door) {
	t.Helper()
	s, err := Listen(t.Context(), Config{
		Listen: "127.0.0.1:0", EndWithin: time.Second, Metrics: prometheus.NewRegistry(), Log: zap.NewNop(),
		NotReady: notReady, Warnings: func() []Reason { return nil }, Broken: func() []Reason { return nil },
	})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(t.Context()) })
	t.Cleanup(running.Wait)
	return s.Addr().String(), s.listener.(*door)
}

func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open.Len()
}

// send opens a connection and sends text, which may be part of a request.
func send(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, text) // the server may have closed the connection already
	return conn
}

func healthy(t *testing.T, address string) {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + "/healthz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

// Without the limit, 1,000 half-sent requests held 1,000 files until their timeout.
func TestHalfSentRequestsNeitherTakeAllFilesNorLockOutAProbe(t *testing.T) {
	address, d := opened(t, func() []Reason { return nil })
	for n := range 600 {
		send(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Sl")
		if n%100 == 99 {
			healthy(t, address)
			require.LessOrEqual(t, d.count(), connections)
		}
	}
	// Idle connections, whose requests were answered, are closed as well.
	for range 2 * connections {
		conn := send(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		answered(t, conn)
	}
	require.LessOrEqual(t, d.count(), connections)
	healthy(t, address)
}

// answered reads a response and requires the status 200.
func answered(t *testing.T, conn net.Conn) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestWhoIsBeingAnsweredIsNotTurnedOut(t *testing.T) {
	goOn := make(chan struct{})
	var held sync.WaitGroup
	held.Add(2)
	address, d := opened(t, func() []Reason { held.Done(); <-goOn; return nil })
	var served [2]net.Conn
	for i := range served {
		served[i] = send(t, address, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	held.Wait()
	first := send(t, address, "GET /")
	require.Eventually(t, func() bool { return d.count() == 3 }, 20*time.Second, time.Millisecond)
	for range connections {
		send(t, address, "GET /")
	}
	_ = first.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err := first.Read(make([]byte, 1))
	require.Error(t, err)
	if late, ok := err.(net.Error); ok { //nolint:errorlint // the very error of a read
		require.False(t, late.Timeout(), "who came first and sent no request stays")
	}
	close(goOn)
	for _, conn := range served {
		answered(t, conn)
	}
	healthy(t, address)
}

// A stream lasts as long as its client stays connected, and is never closed to make room.
func TestAStreamIsNotTurnedOut(t *testing.T) {
	began := make(chan struct{}, 2)
	s, err := Open(t.Context(), Port{
		Name: "port", Listen: "127.0.0.1:0", Connections: 2, EndWithin: time.Second, Log: zap.NewNop(),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				Stream(r.Context())
				_ = http.NewResponseController(w).Flush()
			}
			began <- struct{}{}
			<-r.Context().Done()
		}),
	})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(t.Context()) })
	t.Cleanup(running.Wait)
	address, d := s.Addr().String(), s.listener.(*door)
	stream := send(t, address, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	d.mu.Lock()
	v := d.open.Front().Value.(*visitor)
	v.writing = time.Now().Add(-time.Hour)
	d.mu.Unlock()
	waiting := send(t, address, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	for range 5 {
		other := send(t, address, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = other.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadAll(other); err != nil { // nil: the server closed the connection
			require.ErrorIs(t, err, syscall.ECONNRESET, "there is room")
		}
	}
	d.mu.Lock()
	there := v.place != nil && v.stream
	d.mu.Unlock()
	require.True(t, there, "it was turned out")
	require.NoError(t, errors.Join(stream.Close(), waiting.Close()))
}

// Data that the kernel has buffered for a client cannot be replaced by newer data.
func TestLittleOfAStreamWaitsForWhoDoesNotRead(t *testing.T) {
	taken := make(chan int, 1)
	s, err := Open(t.Context(), Port{
		Name: "port", Listen: "127.0.0.1:0", Connections: 2, EndWithin: time.Second, Log: zap.NewNop(),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Stream(r.Context())
			control, n := http.NewResponseController(w), 0
			for {
				_ = control.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
				some, err := w.Write(make([]byte, 4<<10))
				n += some
				if err != nil {
					taken <- n
					return
				}
			}
		}),
	})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(t.Context()) })
	t.Cleanup(running.Wait)
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10) })
	}}
	conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	require.Less(t, <-taken, 8*streamBuffer)
}

// A client that does not send its body keeps no connection from others either.
func TestAConnectionWhoseBodyIsStillToComeMakesRoom(t *testing.T) {
	began := make(chan struct{}, 10)
	s, err := Open(t.Context(), Port{
		Name: "port", Listen: "127.0.0.1:0", Connections: 2, EndWithin: time.Second, Log: zap.NewNop(),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 0 {
				received := Receive(r.Context())
				defer received()
				began <- struct{}{}
				_, _ = io.ReadAll(r.Body)
			}
		}),
	})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(t.Context()) })
	t.Cleanup(running.Wait)
	for range 2 {
		send(t, s.Addr().String(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
		<-began
	}
	healthy(t, s.Addr().String())
}
