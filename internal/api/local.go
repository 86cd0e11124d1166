package api

// Requests from this machine. A loopback address keeps other machines out, but not the pages in a
// browser on this machine. A page can have its own name resolve to a loopback address (DNS rebinding)
// and read the answers. Its requests then name the page's host, so the Host header tells them apart.

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guarded answers requests for localhost, an IP address or one of hosts, and refuses all others.
func guarded(next http.Handler, hosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namesHost(r, hosts) {
			http.Error(w, "this address is for this machine alone: name localhost, an IP address or one of api.hosts, not another host", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesHost reports whether a request is for localhost, an IP address or one of hosts. Every browser
// names a host.
func namesHost(r *http.Request, hosts []string) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "" || host == "localhost" || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// isLocal reports whether a program of this machine sent a request itself.
func isLocal(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	forwarded := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != ""
	return err == nil && peer.Addr().Unmap().IsLoopback() && !forwarded && namesHost(r, nil)
}

// isLoopback reports whether an address is one that only this machine reaches.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
