package v1

// How much of the process its readers may take: what is beyond that is refused at once, with when
// to come again, so that those who are served are served in time, and what counts events isn't held
// up.

import "sync"

// limit is how many requests are answered at a time, or streams are open, in all and of one client.
type limit struct {
	what string // what there are so many of, as in: 64 <what>
	all  int
	one  int

	mu      sync.Mutex
	serving int
	clients map[string]int
}

func newLimit(all int, what string) *limit {
	return &limit{what: what, all: all, one: max(1, all/2), clients: map[string]int{}}
}

// enter is a problem where there is no room. Else leave is to be called at the end.
func (l *limit) enter(client string) (leave func(), p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.serving >= l.all:
		return nil, problemf(overloaded, "%d %s, and no more at a time", l.all, l.what).later()
	case l.clients[client] >= l.one:
		return nil, problemf(tooMany, "%d %s for this client, and no more at a time", l.one, l.what).later()
	}
	l.serving++
	l.clients[client]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.serving--
		if l.clients[client]--; l.clients[client] == 0 {
			delete(l.clients, client)
		}
	}, nil
}
