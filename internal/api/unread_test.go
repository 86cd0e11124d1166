package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener without a network or buffers: a write blocks until the other side reads.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.done); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// asks opens a connection and sends a request for path.
func (p *pipes) asks(path string) net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	_, _ = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n") // the connection may be closed already
	return client
}

// Clients that request a response and never read it would block all other clients until the write timeout.
func TestWhoNeverReadsTheirAnswerMakesRoomForAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		goOn := make(chan struct{})
		server := &http.Server{ConnContext: withVisitor, WriteTimeout: writeWithin, ReadHeaderTimeout: readWithin,
			Handler: whole(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					<-goOn // the handler is still computing the response, so the client delays nothing
				}
				_, _ = io.WriteString(w, strings.Repeat("metric 1\n", 10_000))
			}))}
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(&door{Listener: p, limit: limit}) }()
		probe := func() error {
			conn := p.asks("/livez")
			defer func() { _ = conn.Close() }()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			return errors.Join(err, answer.Body.Close())
		}

		slow := p.asks("/slow") // the oldest connection, and a legitimate one
		var unread []net.Conn
		for range limit - 1 {
			time.Sleep(10 * time.Millisecond)
			unread = append(unread, p.asks("/metrics"))
		}
		synctest.Wait()
		require.Error(t, probe(), "who came a moment ago may be about to read")
		time.Sleep(unreadFor)
		began := time.Now()
		for range 3 {
			require.NoError(t, probe())
		}
		require.Zero(t, time.Since(began))
		_, err := unread[0].Read(make([]byte, 1))
		require.Error(t, err, "the one that hasn't read for longest")
		_, err = unread[1].Read(make([]byte, 1))
		require.NoError(t, err)

		close(goOn)
		answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.Equal(t, int64(90_000), n)
		require.NoError(t, answer.Body.Close())
		for _, conn := range append(unread, slow) {
			_ = conn.Close()
		}
		require.NoError(t, server.Shutdown(context.Background()))
		<-served
	})
}
