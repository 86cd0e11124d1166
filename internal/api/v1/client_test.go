package v1

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/reading"
)

var someProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("2001:db8:ffff::/64")}

// reached is a request from a peer, with the given X-Forwarded-For lines.
func reached(from string, lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil)
	r.RemoteAddr = from
	r.Header["X-Forwarded-For"] = lines
	return r
}

func TestAClientIsWhoeverReachedTheFirstTrustedProxy(t *testing.T) {
	many := strings.Repeat("10.0.0.2,", 5000)
	for _, c := range []struct {
		peer  string
		lines []string
		is    string
	}{
		{"192.0.2.1:5000", nil, "192.0.2.1"},
		{"192.0.2.1:5000", []string{"198.51.100.9"}, "192.0.2.1"}, // only trusted proxies may name another client
		{"10.0.1.1:5000", []string{"198.51.100.9"}, "10.0.1.1"},
		{"10.0.0.1:5000", nil, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"198.51.100.9"}, "198.51.100.9"},
		{"10.0.0.1:5000", []string{"203.0.113.5, 198.51.100.9"}, "198.51.100.9"}, // the client itself sent the earlier entry
		{"10.0.0.1:5000", []string{"203.0.113.5, 198.51.100.9 , 10.0.0.7"}, "198.51.100.9"},
		{"10.0.0.1:5000", []string{"203.0.113.5, 198.51.100.9", "10.0.0.8,10.0.0.7"}, "198.51.100.9"},
		{"10.0.0.1:5000", []string{"203.0.113.5", "198.51.100.9"}, "198.51.100.9"},
		{"10.0.0.1:5000", []string{"198.51.100.9:4711"}, "198.51.100.9"},
		{"10.0.0.1:5000", []string{"::ffff:198.51.100.9"}, "198.51.100.9"},
		{"[::ffff:10.0.0.1]:5000", []string{"198.51.100.9"}, "198.51.100.9"},
		{"[2001:db8:ffff::5]:5000", []string{"198.51.100.9"}, "198.51.100.9"},
		// An IPv6 client is identified by its /64.
		{"10.0.0.1:5000", []string{"2001:db8:1:2:aaaa::1"}, "2001:db8:1:2::/64"},
		{"10.0.0.1:5000", []string{"2001:db8:1:2:bbbb::2"}, "2001:db8:1:2::/64"},
		{"10.0.0.1:5000", []string{"[2001:db8:1:3::1]:443"}, "2001:db8:1:3::/64"},
		{"10.0.0.1:5000", []string{"[2001:db8:1:3::1]"}, "2001:db8:1:3::/64"},
		{"10.0.0.1:5000", []string{"fe80::1%eth0"}, "fe80::/64"},
		{"10.0.0.1:5000", []string{"[fe80::1%eth0]:443"}, "fe80::/64"},
		{"[2001:db8:1:2:aaaa::1]:5000", nil, "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:5000", nil, "fe80::/64"},
		// If an entry is invalid, the client is the peer.
		{"10.0.0.1:5000", []string{""}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"198.51.100.9, unknown"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"198.51.100.9,"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"198.51.100.9", "", "10.0.0.7"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"999.1.1.1"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"[2001:db8::1"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"198.51.100.9;DROP"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{strings.Repeat("9", 1<<16)}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{strings.Repeat(",", 1<<14)}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{"10.0.0.2, 10.0.0.3"}, "10.0.0.1"}, // only proxies
		{"10.0.0.1:5000", []string{"198.51.100.9," + many + "10.0.0.2"}, "10.0.0.1"},
		{"10.0.0.1:5000", []string{many + "198.51.100.9"}, "198.51.100.9"},
		{"@", []string{"198.51.100.9"}, "@"},
	} {
		a := &api{Config: Config{TrustedProxies: someProxies}}
		is := strings.Join(c.lines, " | ")
		require.Equal(t, c.is, a.clientOf(reached(c.peer, c.lines...), ""), "%s: %.100s", c.peer, is)
		require.Equal(t, "token shop", a.clientOf(reached(c.peer, c.lines...), "shop"))
		direct := (&api{}).clientOf(reached(c.peer), "")
		require.Equal(t, direct, (&api{}).clientOf(reached(c.peer, c.lines...), ""), "nobody is trusted")
	}
}

// Whatever a client writes into the header, its last entry is from the proxy.
func FuzzNoClientIsAnotherOneByItsHeaders(f *testing.F) {
	f.Add("203.0.113.5", "198.51.100.9")
	f.Add("10.0.0.1, ,[::1%25]:0", "::ffff:10.0.0.7")
	f.Add("\x00,\xff", "unknown")
	a := &api{Config: Config{TrustedProxies: someProxies}}
	f.Fuzz(func(t *testing.T, sent, wrote string) {
		const client = "198.51.100.9"
		for _, lines := range [][]string{{sent, client}, {sent + ", " + client}, {sent + "," + client + ",10.0.0.9"}, {sent, sent, client, "10.0.0.9"}} {
			require.Equal(t, client, a.clientOf(reached("10.0.0.1:80", lines...), ""), "%q", lines)
		}
		require.Equal(t, client, a.clientOf(reached(client+":80", sent, wrote), ""))
		is := a.clientOf(reached("10.0.0.1:80", sent, wrote), "") // a proxy that writes any text
		if at, err := netip.ParseAddr(is); err != nil || !at.Is4() {
			of, err := netip.ParsePrefix(is)
			require.NoError(t, err, "%q", is)
			require.True(t, of.Addr().Is6() && of.Bits() == 64 && of.Masked() == of, "%q", is)
		}
	})
}

func TestLimitsAndTheLogAreByTheClientBehindAProxy(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	f := newFixture(t, 1, codec.Readable, func(c *Config, _ *reading.Config) {
		c.Requests, c.TrustedProxies, c.Log = 4, someProxies, zap.New(core)
	})
	h := &held{entered: make(chan struct{}, 100), release: make(chan struct{})}
	f.client.AddHook(h)
	send := func(forwarded string) said {
		r := reached("10.0.0.1:5000", forwarded)
		r.URL.Path = f.named("")
		return ask(t, f, r)
	}
	done := make(chan said, 2)
	for range 2 {
		go func() { done <- send("2001:db8:1:2::1") }()
		<-h.entered
	}
	require.Equal(t, http.StatusTooManyRequests, send("198.51.100.9, 2001:db8:1:2:ffff::2").status, "the same network")
	go func() { done <- send("198.51.100.9") }()
	<-h.entered // another client still has room
	close(h.release)
	for range 3 {
		require.Equal(t, http.StatusOK, (<-done).status)
	}
	clients := map[any]int{}
	for _, entry := range logged.FilterMessage("request").All() {
		clients[entry.ContextMap()["client"]]++
	}
	require.Equal(t, map[any]int{"2001:db8:1:2::/64": 3, "198.51.100.9": 1}, clients)
}
