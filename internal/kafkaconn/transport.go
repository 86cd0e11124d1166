package kafkaconn

// How a cluster is found by any broker of it. kafka-go asks the configured addresses alone for
// metadata and for the group's coordinator: if the only one that is configured dies, leaders that
// move are never found.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

const (
	// learnEvery is how often a transport looks which brokers the cluster has.
	learnEvery = time.Second
	// mostBrokers is how many brokers are remembered.
	mostBrokers = 1000
)

// Transport is kafka-go's, and asks any broker that it knows for what every broker can answer.
//
// kafka-go keeps the connections of a cluster in a pool, by the address of its first call. Of that
// address it reads the text again for each connection. So the pool is begun with an address whose
// text later names all brokers, and every other call has one whose text stays:
//
//	begin         everyBroker: "a:9092"        the pool's key
//	calls         configured:  "a:9092"        the same key
//	connections   everyBroker: "a:9092,b:9092,c:9092", in random order, resolved anew each time
type Transport struct {
	*kafka.Transport

	configured configured
	begin      sync.Once
	learned    atomic.Int64 // when brokers was set, Unix ns
	brokers    atomic.Pointer[[]string]
}

// Transport is a transport for some topics: without the list every refresh of its
// metadata asks for all topics there are. refresh is how often that is, and the
// timeout of the request, too.
func (s Settings) Transport(refresh time.Duration, topics ...string) *Transport {
	t := &Transport{Transport: &kafka.Transport{
		ClientID: ClientID, DialTimeout: s.Timeout, IdleTimeout: time.Minute, Dial: dial,
		TLS: s.TLS, SASL: s.SASL, MetadataTTL: refresh, MetadataTopics: topics,
	}}
	if len(s.Brokers) > 0 {
		t.configured = configured(kafka.TCP(s.Brokers...).String())
	}
	return t
}

// RoundTrip is kafka-go's. A call to other addresses than the configured ones is to those alone.
func (t *Transport) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	if addr.String() != string(t.configured) {
		return t.Transport.RoundTrip(ctx, addr, request) //nolint:wrapcheck // it is kafka-go's own
	}
	t.begin.Do(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = t.Transport.RoundTrip(ended, everyBroker{t}, new(metadata.Request)) // makes the pool, and asks nothing
	})
	response, err := t.Transport.RoundTrip(ctx, t.configured, request)
	if err == nil && time.Since(time.Unix(0, t.learned.Load())) >= learnEvery {
		t.learn(ctx)
	}
	return response, err //nolint:wrapcheck // it is kafka-go's own
}

// learn remembers the brokers of the metadata that kafka-go has. Nothing is sent for it.
func (t *Transport) learn(ctx context.Context) {
	t.learned.Store(time.Now().UnixNano())
	response, err := t.Transport.RoundTrip(ctx, t.configured, &metadata.Request{TopicNames: []string{}})
	if m, ok := response.(*metadata.Response); ok && err == nil && len(m.Brokers) > 0 {
		var all []string
		for _, b := range m.Brokers {
			all = append(all, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
		}
		t.brokers.Store(&all)
	}
}

// addresses are the configured brokers, and those that the cluster had when it was last asked.
func (t *Transport) addresses() []string {
	all := strings.Split(string(t.configured), ",")
	if known := t.brokers.Load(); known != nil {
		for _, b := range *known {
			if !slices.Contains(all, b) && len(all) < mostBrokers {
				all = append(all, b)
			}
		}
	}
	return all
}

// configured are the brokers of the configuration, everyBroker all that are known: of both
// kafka-go tries one address after the other, each with a network of its own.
type (
	configured  string
	everyBroker struct{ *Transport }
)

var networks = strings.Repeat("tcp,", mostBrokers-1) + "tcp"

func (configured) Network() string   { return networks }
func (c configured) String() string  { return string(c) }
func (everyBroker) Network() string  { return networks }
func (e everyBroker) String() string { return strings.Join(e.addresses(), ",") }

// AnyBroker is an address by which the Dialer reaches any broker of its cluster.
const AnyBroker = "any-broker:9092"

// Dialer is for kafka-go's consumer group, which doesn't use a transport: that of t knows the
// brokers.
func (s Settings) Dialer(t *Transport) *kafka.Dialer {
	return &kafka.Dialer{ClientID: ClientID, Timeout: s.Timeout, SASLMechanism: s.SASL,
		DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != AnyBroker {
				return s.dial(ctx, network, address)
			}
			var failed error
			all := t.addresses()
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for i, address := range all {
				part, cancel := share(ctx, len(all)-i)
				c, err := s.dial(part, network, address)
				cancel()
				if err == nil {
					return c, nil
				}
				if failed == nil || ctx.Err() == nil {
					failed = err
				}
			}
			return nil, failed
		}}
}

// share is a context for one of so many tries in what is left of the time: one broker that doesn't
// answer leaves some for the others.
func share(ctx context.Context, tries int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(tries))
}

// dial connects to a broker, by TLS if that is configured: kafka-go would take the name in
// AnyBroker for the broker's.
func (s Settings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := dial(ctx, network, address)
	if err != nil || s.TLS == nil {
		return c, err
	}
	config := s.TLS
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to %s by TLS: %w", address, err)
	}
	return secure, nil
}

// dial connects to an address of which the name is resolved now.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the address
	}
	return &newConn{Conn: c, address: address}, nil
}

// newConn is a connection that names what it may mean if a broker closes it unanswered. One
// goroutine at a time reads.
type newConn struct {
	net.Conn
	address  string
	answered bool
}

// ClosedError is a broker that closed a connection before it answered anything: how a limit of
// connections shows.
type ClosedError struct {
	Broker string
	Err    error
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("Kafka at %s closed a new connection unanswered: if it takes others, it limits connections "+
		"(max.connections.per.ip, max.connections; docs/sizing.md says how many a replica needs): %v", e.Broker, e.Err)
}

func (e *ClosedError) Unwrap() error { return e.Err }

func (c *newConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case c.answered || n > 0:
		c.answered = true
	case errors.Is(err, io.EOF): // kafka-go writes over what is an io.EOF
		err = &ClosedError{c.address, io.ErrUnexpectedEOF}
	case errors.Is(err, syscall.ECONNRESET):
		err = &ClosedError{c.address, err}
	}
	return n, err //nolint:wrapcheck // as net.Conn's
}
