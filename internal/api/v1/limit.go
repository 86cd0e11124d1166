package v1

// Limits on what concurrent requests may use of a process: places, and bytes of bodies. The API refuses a request
// beyond a limit at once, with a Retry-After, so that other requests are answered in time and counting is not
// delayed.
//
// The API grants a request only if the client's new total is at most what is free before it. One client alone gets
// half; with n busy clients each gets about 1/(n+1). The rest stays free for the next client: a client with few
// open requests is served before a client with many.

import "sync"

// limit is the amount of one resource, and its users.
type limit struct {
	of   string // its name in metrics
	what string // as in: at most 64 <what> at a time
	all  int64

	mu      sync.Mutex
	taken   int64
	clients map[string]int64 // the amount that each client uses
}

func newLimit(of, what string, all int) *limit {
	return &limit{of: of, what: what, all: int64(all), clients: map[string]int64{}}
}

// take reserves n for a client. If too little is free it returns a problem; else the caller must call give at the
// end.
func (l *limit) take(client string, n int64) (give func(), p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	has, free := l.clients[client], l.all-l.taken
	switch {
	case n > free:
		return nil, problemf(overloaded, "Too many concurrent %s: the limit is %d", l.what, l.all).later()
	case has+n > free:
		return nil, problemf(tooMany, "Too many concurrent %s of this client: it uses %d of %d, and the rest is reserved for others", l.what, has, l.all).later()
	}
	l.taken += n
	l.clients[client] += n
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken -= n
		if l.clients[client] -= n; l.clients[client] == 0 {
			delete(l.clients, client)
		}
	}, nil
}

// limits are the limits of a process. Long requests have their own limits, so that they do not block reads.
// Requests about bans do, too, since operators must be able to ban members while readers use up the other limits.
type limits struct {
	requests, waits, exports, bans, streams *limit

	bodies *limit // bytes
}

// shareOf is the divisor of api.requests that gives the limit on exports, and the limit on bans.
const shareOf = 4

func newLimits(requests, streams int) limits {
	share := max(1, requests/shareOf)
	return limits{
		requests: newLimit("requests", "requests", requests),
		waits:    newLimit("waits", "requests that wait for an event", requests),
		exports:  newLimit("exports", "exports", share),
		bans:     newLimit("bans", "requests about bans", share),
		streams:  newLimit("streams", "streams", streams),
		bodies:   newLimit("bodies", "bytes of request bodies", mostBodies),
	}
}

func (l *limits) all() []*limit {
	return []*limit{l.requests, l.waits, l.exports, l.bans, l.streams, l.bodies}
}

// place returns the limit that applies to a request.
func (l *limits) place(o *operation, q *request) *limit {
	switch {
	case o.lasts:
		return l.streams
	case o.bans:
		return l.bans
	case o.stream != nil && !q.head():
		return l.exports
	case q.wait > 0:
		return l.waits
	}
	return l.requests
}
