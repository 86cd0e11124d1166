package api

// The limit on a port's open connections. Each connection costs a file descriptor and memory, and a process that
// has run out of file descriptors cannot dial Kafka or Redis any more. A plain limit would lock out the
// orchestrator's probes as soon as other clients hold all connections. So the port accepts every new connection
// and closes the one that has gone longest without sending a complete request. A probe sends its request at once.
//
// If every connection has a complete request, the port closes the one whose response has been in writing for
// longest, provided that it has taken more than a second. Responses come from memory, so a client that reads
// receives its response at once. A client that never reads would otherwise keep its connection until the write
// timeout, and 128 such clients would occupy the whole port.
//
// A stream is a response that lasts as long as its client stays connected. The port never closes a stream to make
// room: the handler that serves streams limits their number, which must be below the port's limit, and sets a
// deadline for each write.

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// unreadFor is how long a response may be in writing before its connection may be closed for a new one.
const unreadFor = time.Second

// door is a listener that limits the number of open connections.
type door struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open list.List // of *visitor; the connection that has waited longest for a complete request comes first
}

// visitor is an accepted connection.
type visitor struct {
	net.Conn
	door    *door
	place   *list.Element // door.mu guards this and the fields below; nil once the connection is closed
	serving bool          // a complete request has arrived and is being answered
	writing time.Time     // when the response's first byte was written; zero before that
	stream  bool          // the response is a stream
}

// Accept returns the next connection. It closes new connections only while all others are being answered.
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
		_ = conn.Close() // the client may try again
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

// turnOut closes one connection to make room, and reports whether it could: the one that has waited longest for a
// complete request, else the one with the slowest response.
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

// leave closes the connection. The caller holds door.mu.
func (v *visitor) leave() {
	v.door.open.Remove(v.place)
	v.place = nil
	_ = v.Conn.Close() // its goroutine gets an error and ends
}

// Write records when the response began: a write may block until the client reads.
func (v *visitor) Write(b []byte) (int, error) {
	v.door.mu.Lock()
	if v.serving && v.writing.IsZero() {
		v.writing = time.Now()
	}
	v.door.mu.Unlock()
	return v.Conn.Write(b)
}

// Close closes the connection and frees its place.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	if v.place != nil {
		v.door.open.Remove(v.place)
		v.place = nil
	}
	v.door.mu.Unlock()
	return v.Conn.Close()
}

// serve records the state of the connection: with true, that a complete request has arrived and is being answered;
// with false, that the next request is awaited.
func (v *visitor) serve(yes bool) {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.serving, v.writing, v.stream = yes, time.Time{}, false
	if v.place != nil {
		v.door.open.MoveToBack(v.place)
	}
}

type visitorKey struct{}

// withVisitor stores the connection in the context of its requests.
func withVisitor(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, conn)
}

// streamBuffer is the size in bytes of the kernel's send buffer for a stream. Data that waits in this buffer
// cannot be replaced by newer data.
const streamBuffer = 32 << 10

// Stream marks the response to the context's request as a stream.
func Stream(ctx context.Context) {
	v, ok := ctx.Value(visitorKey{}).(*visitor)
	if !ok {
		return
	}
	v.door.mu.Lock()
	v.stream = true
	v.door.mu.Unlock()
	if conn, ok := v.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = conn.SetWriteBuffer(streamBuffer) // if this fails, the buffer keeps its usual size
	}
}

// Receive records that the body of the context's request has not arrived yet. Until received is called, the
// connection may be closed to make room, like one without a complete request.
func Receive(ctx context.Context) (received func()) {
	v, ok := ctx.Value(visitorKey{}).(*visitor)
	if !ok {
		return func() {}
	}
	v.serve(false)
	return func() { v.serve(true) }
}

// whole marks the connection of each request as being answered while next runs.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			v.serve(true)
			defer v.serve(false)
		}
		next.ServeHTTP(w, r)
	})
}
