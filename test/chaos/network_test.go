package chaos

// A network that can be cut, made slow and made to swallow what is sent: Shopify's
// toxiproxy between the consumers and a server.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/standings/standings/internal/embedded/child"
)

// network is what is between the consumers and one server.
type network struct {
	address  string // where the server is found through it
	proxy    *toxiproxy.Proxy
	accepted atomic.Int64 // connections, ever
}

// freeAddress is one that nobody listens on. It is known before there is anything
// behind it: a server may have to announce it.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// newNetwork leads to a server at upstream by an address of its own.
func newNetwork(t testing.TB, name, address, upstream string) *network {
	t.Helper()
	n := &network{address: address}
	log := zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) {
		if message == "Accepted client" {
			n.accepted.Add(1)
		}
	}))
	n.proxy = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), name, address, upstream)
	if err := n.proxy.Start(); err != nil {
		t.Fatalf("a network to %s at %s: %v", name, address, err)
	}
	t.Cleanup(n.proxy.Stop)
	return n
}

// cut ends every connection, and refuses new ones until mend.
func (n *network) cut() { n.proxy.Stop() }

// mend ends a cut.
func (n *network) mend() error {
	if err := n.proxy.Start(); err != nil {
		return fmt.Errorf("mend the network at %s: %w", n.address, err)
	}
	return nil
}

// poison adds a toxic in one direction, upstream or downstream, until heal.
func (n *network) poison(kind, direction string, attributes map[string]int64) error {
	text, err := json.Marshal(map[string]any{"type": kind, "stream": direction, "attributes": attributes})
	if err != nil {
		return err
	}
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
		return fmt.Errorf("add %s to the network at %s: %w", text, n.address, err)
	}
	return nil
}

// heal takes all toxics away. What a half-open connection has swallowed stays lost:
// toxiproxy ends it.
func (n *network) heal() { n.proxy.Toxics.ResetToxics(context.Background()) }
