package kafkaconn

// The diagnosis of why brokers refuse this program. A refused client learns little: kafka-go reports a
// closed connection, a broker that is not available, or a missing topic. So after a failure this file
// connects once more, step by step: TCP, TLS, the protocol, SASL. It reports only causes that are certain;
// a broker that is starting or hangs is not a refusal.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

// Refusal reports that a broker refuses this program. Retrying does not help.
type Refusal struct { //nolint:errname // what a broker says, more than what went wrong
	Broker string // host:port
	What   string // the cause, and the setting concerned
	Err    error  // the original error; may be nil
}

func (r *Refusal) Error() string { return fmt.Sprintf("Kafka at %s %s", r.Broker, r.What) }
func (r *Refusal) Unwrap() error { return r.Err }

// patience is how long the brokers may take to show why they refuse.
const patience = 5 * time.Second

// firstAnswer is how long a broker may take for its first answer. It leaves time to find out whether the
// broker expects TLS, or plain text.
const firstAnswer = patience / 3

// atOnce is the number of brokers that are diagnosed concurrently.
const atOnce = 8

// Diagnose finds out why the brokers cannot be used. If one lets this program in, it also checks the
// addresses that the cluster advertises, which may be of another kind. It returns a *Refusal if a broker
// refuses and none lets this program in: a single broker with another configuration holds up only its own
// partitions. nil means that no cause is certain.
func (s Settings) Diagnose(ctx context.Context, brokers ...string) error {
	advertised, refused := s.ask(ctx, brokers)
	if refused != nil || slices.ContainsFunc(advertised, func(b string) bool { return slices.Contains(brokers, b) }) {
		return refused
	}
	if _, refused = s.ask(ctx, advertised); refused != nil {
		return fmt.Errorf("%w (the address is what the cluster advertises)", refused)
	}
	return nil
}

// ask probes all brokers until one lets this program in. It returns the addresses that this broker
// advertises, or else a refusal if there is one.
func (s Settings) ask(ctx context.Context, brokers []string) (advertised []string, refused error) {
	ctx, enough := context.WithTimeout(ctx, patience)
	defer enough()
	type answer struct {
		advertised []string
		err        error
	}
	answers := make([]answer, len(brokers))
	var asked sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, b := range brokers {
		asked.Go(func() {
			places <- struct{}{}
			if answers[i].advertised, answers[i].err = s.probe(ctx, b); answers[i].err == nil {
				enough()
			}
			<-places
		})
	}
	asked.Wait()
	for _, a := range answers {
		if a.err == nil {
			return a.advertised, nil
		}
		if refused == nil && errors.As(a.err, new(*Refusal)) {
			refused = a.err
		}
	}
	return nil, refused
}

// probe connects as far as a client does, and returns the addresses that the cluster advertises. A broker
// that closes the connection during SASL may be shutting down; if it does so twice, probe returns a
// refusal.
func (s Settings) probe(ctx context.Context, broker string) ([]string, error) {
	p := &prober{Settings: s, broker: broker}
	advertised, err := p.once(ctx)
	if errors.Is(err, errHungUp) {
		if advertised, err = p.once(ctx); errors.Is(err, errHungUp) {
			err = p.refusal(err, "hangs up on the user %s, by %s: mostly for a wrong user or password", s.User, s.SASL.Name())
		}
	}
	return advertised, err
}

// errHungUp reports that a broker closed the connection during SASL.
var errHungUp = errors.New("the broker closed the connection")

func (p *prober) once(ctx context.Context) ([]string, error) {
	c, err := p.open(ctx, p.TLS)
	if err != nil {
		return nil, p.notOpened(ctx, err)
	}
	defer c.Close() //nolint:errcheck // nothing was written that matters
	if err := negotiate(ctx, c); err != nil {
		return nil, p.notTalking(ctx, err)
	}
	if p.SASL != nil {
		if err := p.prove(ctx, c); err != nil {
			return nil, err
		}
	}
	m, err := c.RoundTrip(&metadata.Request{TopicNames: []string{}})
	if err != nil {
		return nil, p.notAnswering(ctx, err)
	}
	var advertised []string
	for _, b := range m.(*metadata.Response).Brokers {
		advertised = append(advertised, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	return advertised, nil
}

// prober probes one broker.
type prober struct {
	Settings
	broker string
	asked  bool // the broker has requested a certificate
}

func (p *prober) refusal(err error, format string, args ...any) error {
	return &Refusal{p.broker, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "), err}
}

// open connects, by TLS if secure is not nil.
func (p *prober) open(ctx context.Context, secure *tls.Config) (*protocol.Conn, error) {
	tcp, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.broker)
	if err != nil {
		return nil, err
	}
	// When the context ends, a call that hangs on the connection fails.
	context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Unix(1, 0)) })
	if secure == nil {
		return protocol.NewConn(tcp, ClientID), nil
	}
	secure = secure.Clone()
	if secure.ServerName == "" {
		secure.ServerName = p.host()
	}
	show := secure.GetClientCertificate
	secure.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		p.asked = true
		if show == nil {
			return new(tls.Certificate), nil
		}
		return show(r)
	}
	c := tls.Client(tcp, secure)
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return protocol.NewConn(c, ClientID), nil
}

func (p *prober) host() string {
	host, _, err := net.SplitHostPort(p.broker)
	if err != nil {
		return p.broker
	}
	return host
}

// negotiate requests the broker's versions. It is the first request on a connection.
func negotiate(ctx context.Context, c *protocol.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetDeadline(time.Now().Add(firstAnswer))
	m, err := c.RoundTrip(new(apiversions.Request))
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	r := m.(*apiversions.Response)
	if r.ErrorCode != 0 {
		return kafka.Error(r.ErrorCode)
	}
	versions := map[protocol.ApiKey]int16{}
	for _, k := range r.ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		versions[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	c.SetVersions(versions)
	return nil
}

// notAnswering explains why a broker closes the connection after the first answer. It sends a SASL
// handshake to find out whether the broker requires a user.
func (p *prober) notAnswering(ctx context.Context, err error) error {
	if p.SASL != nil {
		return err
	}
	if offered, ok := p.mechanisms(ctx); ok {
		return p.refusal(err, "asks who is there, and kafka.sasl.mechanism is none: it offers %s", offered)
	}
	return err
}

// mechanisms returns the SASL mechanisms that the broker offers; false if it does not require SASL.
func (p *prober) mechanisms(ctx context.Context) (string, bool) {
	c, err := p.open(ctx, p.TLS)
	if err != nil {
		return "", false
	}
	defer c.Close() //nolint:errcheck // nothing was written that matters
	if negotiate(ctx, c) != nil {
		return "", false
	}
	m, err := c.RoundTrip(&saslhandshake.Request{Mechanism: "NONE"})
	if err != nil {
		return "", false
	}
	r := m.(*saslhandshake.Response)
	return strings.Join(r.Mechanisms, ", "), errors.Is(kafka.Error(r.ErrorCode), kafka.UnsupportedSASLMechanism)
}

// prove authenticates by SASL.
func (p *prober) prove(ctx context.Context, c *protocol.Conn) error {
	name := p.SASL.Name()
	m, err := c.RoundTrip(&saslhandshake.Request{Mechanism: name})
	if err != nil {
		return err
	}
	r := m.(*saslhandshake.Response)
	switch code := kafka.Error(r.ErrorCode); {
	case r.ErrorCode == 0:
	case errors.Is(code, kafka.UnsupportedSASLMechanism):
		return p.refusal(code, "doesn't offer %s, but %s: see kafka.sasl.mechanism", name, strings.Join(r.Mechanisms, ", "))
	case errors.Is(code, kafka.IllegalSASLState):
		return p.refusal(code, "takes no user on this port, and kafka.sasl.mechanism is %s: set it to none, or use a port that takes one", strings.ToLower(name))
	default:
		return code
	}
	ctx = sasl.WithMetadata(ctx, &sasl.Metadata{Host: p.host()})
	session, state, err := p.SASL.Start(ctx)
	if err != nil {
		return err
	}
	for done := false; !done; {
		m, err := c.RoundTrip(&saslauthenticate.Request{AuthBytes: state})
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: %w", errHungUp, err)
		}
		if err != nil {
			return err
		}
		r := m.(*saslauthenticate.Response)
		switch code := kafka.Error(r.ErrorCode); {
		case r.ErrorCode == 0:
		case errors.Is(code, kafka.SASLAuthenticationFailed):
			return p.refusal(code, "refuses the user %s or the password, by %s: %s", p.User, name, r.ErrorMessage)
		default:
			return code
		}
		if done, state, err = session.Next(ctx, r.AuthBytes); err != nil {
			return p.refusal(err, "doesn't prove by %s that it knows the user's password: %v", name, err)
		}
	}
	return nil
}
