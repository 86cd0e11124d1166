package v1

// Whose a request is: the holder of a token, or an address. Limits count by it, and the log of
// requests has it.

import (
	"net/http"
	"net/netip"
	"strings"
)

const (
	// mostProxies is how many proxies one behind the other are followed.
	mostProxies = 16
	// addressBits of an IPv6 address are a client's: a network gives a customer at least a /64, of
	// which any machine takes as many addresses as it likes.
	addressBits = 64
)

// clientOf is whose request it is.
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

// behind is the client for whom trusted proxies have sent a request. Each proxy writes the address
// that it was reached from at the end of X-Forwarded-For; what was there before is whatever its
// client sent. So it is read from its end, as long as what is found is a trusted proxy: the first
// that isn't is the client, and what is left of it is anybody's word. Where there is none, or what a
// trusted proxy wrote isn't an address, it is the peer.
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

// proxied reports whether an address is that of a trusted proxy.
func (a *api) proxied(at netip.Addr) bool {
	for _, of := range a.TrustedProxies {
		if of.Contains(at) {
			return true
		}
	}
	return false
}

// addressOf reads an address, with a port or without: 10.0.0.1, 10.0.0.1:80, ::1, [::1], [::1]:80,
// fe80::1%eth0. What has no meaning elsewhere is left out: the port, the zone, and that an IPv4
// address came over IPv6.
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
