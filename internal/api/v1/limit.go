package v1

// Limits of what requests may take of a process at a time: places, and bytes of bodies. The API refuses
// a request beyond a limit at once, with the time to try again, so that other requests are answered in
// time and counting events isn't held up.
//
// A client gets more only while it has less than what is free. One client alone gets half; of n busy
// clients each gets about 1/(n+1). The rest goes to the next client: one with few open requests is
// served before one with many.

import "sync"

// limit is how much there is of something.
type limit struct {
	of   string // its name in metrics
	what string // as in: at most 64 <what> at a time
	all  int64

	mu      sync.Mutex
	taken   int64
	clients map[string]int64 // what each client has
}

func newLimit(of, what string, all int) *limit {
	return &limit{of: of, what: what, all: int64(all), clients: map[string]int64{}}
}

// take reserves n for a client, and is a problem if too little is free. Else give is to be called at
// the end.
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

// limits are those of a process. Requests that last long have limits of their own, so that they
// don't keep reads out; so do bans, which must be possible while readers are too many.
type limits struct {
	requests, waits, exports, bans, streams *limit

	bodies *limit // in bytes
}

// shareOf is the part of api.requests that exports may have, and bans.
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

// place is the limit that a request takes a place of.
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
