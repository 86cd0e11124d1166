package v1

// The client of a request: the holder of its token, or an address. The limits per client and the request log use
// it.

import (
	"net/http"
	"net/netip"
	"strings"
)

const (
	// mostProxies is the maximum number of proxies in a chain.
	mostProxies = 16
	// addressBits is the length of the prefix that identifies an IPv6 client. Networks assign at least a /64 to a
	// customer, and any machine in it can use any number of its addresses.
	addressBits = 64
)

// clientOf returns the client of a request.
func (a *api) clientOf(r *http.Request, holder string) string {
	if holder != "" {
		return "token " + holder
	}
	peer, ok := addressOf(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if a.proxied(peer) {
		peer = a.behind(r, peer)
	}
	if peer.Is6() {
		return netip.PrefixFrom(peer, addressBits).Masked().String()
	}
	return peer.String()
}

// behind returns the client for which trusted proxies forwarded a request. Each proxy appends the address of its
// own client to X-Forwarded-For; the entries before that are whatever this client sent. So behind reads the header
// from its end and skips trusted proxies: the first other address is the client, and the entries before it are
// ignored as unverified. If all entries are trusted proxies, there are too many, or a trusted proxy's entry is not
// an address, behind returns the peer.
func (a *api) behind(r *http.Request, peer netip.Addr) netip.Addr {
	lines := r.Header.Values("X-Forwarded-For")
	for n := 0; len(lines) > 0; lines = lines[:len(lines)-1] {
		for rest, more := lines[len(lines)-1], true; more; n++ {
			var last string
			if i := strings.LastIndexByte(rest, ','); i >= 0 {
				rest, last = rest[:i], rest[i+1:]
			} else {
				last, more = rest, false
			}
			at, ok := addressOf(strings.TrimSpace(last))
			switch {
			case !ok, n >= mostProxies:
				return peer
			case !a.proxied(at):
				return at
			}
		}
	}
	return peer
}

// proxied reports whether an address belongs to a trusted proxy.
func (a *api) proxied(at netip.Addr) bool {
	for _, of := range a.TrustedProxies {
		if of.Contains(at) {
			return true
		}
	}
	return false
}

// addressOf parses an address with or without a port: 10.0.0.1, 10.0.0.1:80, ::1, [::1], [::1]:80, fe80::1%eth0.
// It drops the parts that have no meaning on other machines: the port, the zone, and the IPv4-in-IPv6 form.
func addressOf(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if inside, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inside, "]"); !ok {
			return netip.Addr{}, false
		}
	}
	at, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	return at.Unmap().WithZone(""), true
}
