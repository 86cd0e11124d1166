package v1

// Cross-origin requests (CORS): browsers ask the API whether a page of another origin may read.

import (
	"net/http"
	"slices"
)

// crossOrigin sets the headers that allow a page of another origin to read the response. It answers OPTIONS
// requests itself and then returns true.
func (a *api) crossOrigin(w http.ResponseWriter, r *http.Request, all []operation) (done bool) {
	origin := r.Header.Get("Origin")
	allowed := origin != "" && (slices.Contains(a.Origins, "*") || slices.Contains(a.Origins, origin))
	if len(a.Origins) > 0 {
		w.Header().Add("Vary", "Origin")
	}
	if allowed {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "ETag, Retry-After")
	}
	if r.Method != http.MethodOptions || len(all) == 0 {
		return false
	}
	w.Header().Set("Allow", methodsOf(all))
	if allowed && r.Header.Get("Access-Control-Request-Method") != "" {
		w.Header().Set("Access-Control-Allow-Methods", methodsOf(all))
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match, Last-Event-ID")
		w.Header().Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}
