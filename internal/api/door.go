package api

// How many connections the port takes. Each costs a file and memory, and a process without
// files left can't dial Kafka or Redis any more. A plain limit would lock out the probes of
// an orchestrator as soon as somebody holds that many; so whoever comes is let in, and the
// connection that has sent no whole request for longest goes. A probe sends its own at once.
//
// Where every request is whole, the answer that has been written for longest goes, after a
// second: answers come from memory, and who takes its own takes no time. Who never reads
// would otherwise keep a place until its time to write is over, and 128 of them all of them.
//
// A stream is an answer that lasts as long as its client stays. Streams aren't turned out: whoever
// serves them has a limit of them, which the port's has to be above, and a time for each write.

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// unreadFor is how long an answer may be on its way where others want the place.
const unreadFor = time.Second

// door is a listener with a limit.
type door struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open list.List // of *visitor: who has been waited for longest is first
}

// visitor is a connection.
type visitor struct {
	net.Conn
	door    *door
	place   *list.Element // guarded by door.mu, as is what follows; nil once it is gone
	serving bool          // its request is whole, and being answered
	writing time.Time     // since when its answer is being written; zero before its first byte
	stream  bool          // its answer is one
}

// Accept lets in the next, whom there is always room for but where every other is being
// answered.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &visitor{Conn: conn, door: d}
		if d.admit(v) {
			return v, nil
		}
		_ = conn.Close() // whoever it is may come again
	}
}

func (d *door) admit(v *visitor) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open.Len() >= d.limit && !d.turnOut() {
		return false
	}
	v.place = d.open.PushBack(v)
	return true
}

// turnOut closes the connection that has been waited for longest, if there is one.
func (d *door) turnOut() bool {
	var slowest *visitor
	for e := d.open.Front(); e != nil; e = e.Next() {
		v := e.Value.(*visitor)
		if !v.serving {
			v.leave()
			return true
		}
		if !v.stream && !v.writing.IsZero() && (slowest == nil || v.writing.Before(slowest.writing)) {
			slowest = v
		}
	}
	if slowest == nil || time.Since(slowest.writing) < unreadFor {
		return false
	}
	slowest.leave()
	return true
}

// leave is called with the door's lock held.
func (v *visitor) leave() {
	v.door.open.Remove(v.place)
	v.place = nil
	_ = v.Conn.Close() // its goroutine sees that, and ends
}

// Write notes since when its answer is being written: a write may wait for the reader.
func (v *visitor) Write(b []byte) (int, error) {
	v.door.mu.Lock()
	if v.serving && v.writing.IsZero() {
		v.writing = time.Now()
	}
	v.door.mu.Unlock()
	return v.Conn.Write(b)
}

// Close makes room.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	if v.place != nil {
		v.door.open.Remove(v.place)
		v.place = nil
	}
	v.door.mu.Unlock()
	return v.Conn.Close()
}

// serve is called where a request is whole, and where it is answered: from then on its
// next is waited for.
func (v *visitor) serve(yes bool) {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.serving, v.writing, v.stream = yes, time.Time{}, false
	if v.place != nil {
		v.door.open.MoveToBack(v.place)
	}
}

type visitorKey struct{}

// withVisitor gives requests their connection.
func withVisitor(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, conn)
}

// streamBuffer is how many bytes the kernel takes for a client that doesn't read them: what waits
// there can't be replaced by what is newer.
const streamBuffer = 32 << 10

// Stream notes that the answer to the request of a context is a stream.
func Stream(ctx context.Context) {
	v, ok := ctx.Value(visitorKey{}).(*visitor)
	if !ok {
		return
	}
	v.door.mu.Lock()
	v.stream = true
	v.door.mu.Unlock()
	if conn, ok := v.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = conn.SetWriteBuffer(streamBuffer) // with the usual one it is a slower stream
	}
}

// Receive notes that the body of the request of a context is still to come. Until received is called,
// its connection may be closed to make room, as one whose request isn't whole.
func Receive(ctx context.Context) (received func()) {
	v, ok := ctx.Value(visitorKey{}).(*visitor)
	if !ok {
		return func() {}
	}
	v.serve(false)
	return func() { v.serve(true) }
}

// whole notes that requests are whole.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			v.serve(true)
			defer v.serve(false)
		}
		next.ServeHTTP(w, r)
	})
}
