package v1

// Pages of other origins: browsers ask before they let one read.

import (
	"net/http"
	"slices"
)

// crossOrigin says whether a page may read the answer, and answers a browser that asks that alone:
// then it is done.
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
