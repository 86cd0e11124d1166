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

// SharedThrottle is the longest throttle with which a connection is kept. The broker
// doesn't read from a connection that it throttles (KIP-219), and the transport
// gives any request to any connection: behind a longer throttle the deadlines of
// others would pass, those of other partitions and of commits.
const SharedThrottle = time.Second

// unmuting is a transport that keeps no connection that a broker has muted after a write.
// A broker reads nothing from a connection that it throttles (KIP-219), and kafka-go's
// transport gives any request to any connection: those of other partitions, and commits,
// would go unanswered for as long. As fetch does of its own, it has such a connection
// closed once the response is in.
type unmuting struct{ kafka.RoundTripper }

func (u unmuting) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	r, ok := request.(*produce.Request)
	pools := false // others have no connections to close
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

var errMuted = errors.New("the broker reads nothing from this connection for a while") // closes it; the response is good

// produceExchange is a write that looks at its response while it has the connection. Its
// fields are the connection's until the call is answered; a call that is given up leaves
// them to it.
type produceExchange struct {
	*produce.Request

	version  int16
	response protocol.Message
}

var correlations atomic.Int32

// Required says that the exchange is ours, and learns the connection's version.
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
