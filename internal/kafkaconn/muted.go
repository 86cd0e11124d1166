package kafkaconn

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"
)

// SharedThrottle is the longest throttle time for which a connection is kept. A broker does not read from a
// connection that it throttles (KIP-219), and the transport may send any request on any connection. During
// a longer throttle the deadlines of other requests, such as fetches of other partitions and commits, would
// pass.
const SharedThrottle = time.Second

// unmuting is a transport that closes a connection that a broker has muted after a write, once the response
// is in (see SharedThrottle). Package fetch does the same for its requests.
type unmuting struct{ kafka.RoundTripper }

func (u unmuting) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	r, ok := request.(*produce.Request)
	pools := false // other transports have no connections to close
	switch u.RoundTripper.(type) {
	case *Transport, *kafka.Transport:
		pools = true
	}
	if !ok || !pools || !r.HasResponse() {
		return u.RoundTripper.RoundTrip(ctx, addr, request)
	}
	x := &produceExchange{Request: r}
	response, err := u.RoundTripper.RoundTrip(ctx, addr, x)
	if errors.Is(err, errMuted) {
		return x.response, nil
	}
	return response, err
}

var errMuted = errors.New("the broker reads nothing from this connection for a while") // closes the connection

// produceExchange is a write that reads its own response from the connection. Its fields belong to the
// connection until the call is answered; after an abandoned call the connection keeps them.
type produceExchange struct {
	*produce.Request

	version  int16
	response protocol.Message
}

var correlations atomic.Int32

// Required returns true, and stores the connection's version.
func (x *produceExchange) Required(versions map[protocol.ApiKey]int16) bool {
	x.version = versions[protocol.Produce]
	return true
}

// RawExchange writes the request and reads the response. An error closes the connection.
func (x *produceExchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	m, err := protocol.RoundTrip(rw, x.version, correlations.Add(1), ClientID, x.Request)
	if err != nil {
		return nil, err //nolint:wrapcheck // as kafka-go's own exchange
	}
	if r, ok := m.(*produce.Response); ok && time.Duration(r.ThrottleTimeMs)*time.Millisecond > SharedThrottle {
		x.response = m
		return nil, errMuted
	}
	return m, nil
}
