package kafkaconn

// Discovery of a cluster through any of its brokers. kafka-go asks only the configured addresses for
// metadata and for the group's coordinator: if the only configured broker dies, kafka-go never finds the
// new leaders.

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
	// learnEvery is the interval at which a transport updates its list of brokers.
	learnEvery = time.Second
	// mostBrokers is the largest number of brokers that are remembered.
	mostBrokers = 1000
)

// Transport is a kafka.Transport that sends requests that every broker can answer to any known broker.
//
// kafka-go keeps the connections of a cluster in a pool, whose key is the text of the address in the first
// call. It reads the text of that address object again for each new connection. So the first call uses an
// address whose text later lists all brokers, and all other calls use one whose text stays the same:
//
//	begin         everyBroker: "a:9092"        the pool's key
//	calls         configured:  "a:9092"        the same key
//	connections   everyBroker: "a:9092,b:9092,c:9092", in random order, resolved for each connection
type Transport struct {
	*kafka.Transport

	configured configured
	begin      sync.Once
	learned    atomic.Int64 // when brokers was set, Unix ns
	brokers    atomic.Pointer[[]string]
}

// Transport returns a transport for some topics: without topics every refresh of its metadata requests all
// topics of the cluster. refresh is the interval of these requests, and their timeout.
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

// RoundTrip sends a request like kafka-go's transport. A request to other addresses than the configured
// ones is sent only to those.
func (t *Transport) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	if addr.String() != string(t.configured) {
		return t.Transport.RoundTrip(ctx, addr, request) //nolint:wrapcheck // it is kafka-go's own
	}
	t.begin.Do(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = t.Transport.RoundTrip(ended, everyBroker{t}, new(metadata.Request)) // creates the pool
	})
	response, err := t.Transport.RoundTrip(ctx, t.configured, request)
	if err == nil && time.Since(time.Unix(0, t.learned.Load())) >= learnEvery {
		t.learn(ctx)
	}
	return response, err //nolint:wrapcheck // it is kafka-go's own
}

// learn stores the brokers from the metadata that kafka-go has cached. It sends nothing.
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

// addresses returns the configured brokers, and the other brokers of the last metadata.
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

// configured are the configured brokers, and everyBroker all known ones. kafka-go tries the addresses of
// both one after the other, and expects a network for each.
type (
	configured  string
	everyBroker struct{ *Transport }
)

var networks = strings.Repeat("tcp,", mostBrokers-1) + "tcp"

func (configured) Network() string   { return networks }
func (c configured) String() string  { return string(c) }
func (everyBroker) Network() string  { return networks }
func (e everyBroker) String() string { return strings.Join(e.addresses(), ",") }

// AnyBroker is an address for which the Dialer connects to any broker of its cluster.
const AnyBroker = "any-broker:9092"

// Dialer returns a dialer for kafka-go's consumer group, which does not use a transport. It takes the known
// brokers from t.
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

// share returns a context for one of several attempts in the remaining time, so that a broker that does not
// answer leaves time for the others.
func share(ctx context.Context, tries int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(tries))
}

// dial connects to a broker, by TLS if it is configured. If kafka-go did TLS, it would expect AnyBroker's
// host name in the certificate.
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

// dial resolves the name in an address, and connects.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the address
	}
	return &newConn{Conn: c, address: address}, nil
}

// newConn is a connection that explains the likely cause if a broker closes it without an answer. One
// goroutine at a time reads.
type newConn struct {
	net.Conn
	address  string
	answered bool
}

// ClosedError reports that a broker closed a connection before it answered. A limit on connections has this
// effect.
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
	case errors.Is(err, io.EOF): // kafka-go replaces an io.EOF by another error
		err = &ClosedError{c.address, io.ErrUnexpectedEOF}
	case errors.Is(err, syscall.ECONNRESET):
		err = &ClosedError{c.address, err}
	}
	return n, err //nolint:wrapcheck // as net.Conn's
}
