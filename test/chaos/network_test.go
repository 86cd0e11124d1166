package chaos

// This file simulates a network that can be cut, delayed, and made to drop data: Shopify's toxiproxy
// between the consumers and a server.

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

// network is the network between the consumers and one server.
type network struct {
	address  string // the server's address as consumers see it
	proxy    *toxiproxy.Proxy
	accepted atomic.Int64 // total number of connections
}

// freeAddress returns an unused address. It is known before the server starts, because the server may have
// to announce it.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// newNetwork creates a network at address that leads to the server at upstream.
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

// cut ends all connections, and refuses new ones until mend.
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

// heal removes all toxics. toxiproxy closes a half-open connection; the data that it has dropped remains
// lost.
func (n *network) heal() { n.proxy.Toxics.ResetToxics(context.Background()) }
