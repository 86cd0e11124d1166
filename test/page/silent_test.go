package page

// A network that falls silent: it refuses and closes nothing, but nothing arrives.

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// network forwards connections to a server, until it falls silent. Data that is sent meanwhile is lost forever, and
// so are the connections that carried it.
type network struct {
	net.Listener

	server string
	silent atomic.Bool
}

func newNetwork(t *testing.T, server string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &network{Listener: l, server: server}
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", n.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, behind)
			mu.Unlock()
			lost := new(atomic.Bool)
			running.Go(func() { n.pass(behind, client, lost) })
			running.Go(func() { n.pass(client, behind, lost) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return n
}

// pass forwards data until the connection is lost.
func (n *network) pass(to, from net.Conn, lost *atomic.Bool) {
	b := make([]byte, 32<<10)
	for {
		read, err := from.Read(b)
		if n.silent.Load() {
			lost.Store(true)
		}
		switch {
		case lost.Load() && err == nil:
			continue
		case lost.Load():
			return // the other side does not see the end either
		case err != nil:
			_ = to.Close()
			return
		}
		if _, err := to.Write(b[:read]); err != nil {
			return
		}
	}
}

// The page used to wait 45 s for a silent connection and as long for each retry, since a silent network refuses
// none. It then recovered only 221 s after the network.
func TestThePageIsBackSoonAfterANetworkThatFellSilent(t *testing.T) {
	testenv.Slow(t)
	p := begin(t)
	p.earns("ada", 30)
	p.earns("bea", 20)
	n := newNetwork(t, p.url()[len("http://"):len(p.url())-1])
	b := open(t, desktop, "http://"+n.Addr().String()+"/")
	b.showsMembers("ada", "bea")
	n.silent.Store(true)
	p.earns("bea", 50)
	time.Sleep(58 * time.Second) // retries are in progress
	require.Equal(t, []string{"ada", "bea"}, b.members())
	b.shows("#link", "Not connected")
	n.silent.Store(false)
	began := time.Now()
	for eval[string](b, "document.querySelector('#link').dataset.state") != "live" || b.members()[0] != "bea" {
		require.Less(t, time.Since(began), 45*time.Second)
		time.Sleep(100 * time.Millisecond)
	}
}
