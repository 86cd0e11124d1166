// Package kafkaconn connects to Kafka's brokers, with or without TLS and SASL, and sends the requests that
// several parts of this program need. kafka-go's transport, its dialer and the diagnosis of refused
// connections use the same settings. The package knows nothing of events.
//
// It guarantees its callers:
//
//   - Every call has a deadline: the timeout of its client.
//   - One table classifies errors as transient, or as requiring the operator (classify.go).
//   - A refusal names the broker, the cause and the setting concerned, and is never a guess (diagnose.go,
//     tls.go). A missing right is reported before it is needed (rights.go).
//   - Offsets of a log are requested in an order that gives correct results even if the log grows or is
//     truncated meanwhile (logs.go).
package kafkaconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// ClientID is the client id that this program sends to brokers.
const ClientID = "standings"

// Settings describe how to connect to a broker.
type Settings struct {
	Brokers []string       // the configured addresses
	TLS     *tls.Config    // nil: no TLS
	SASL    sasl.Mechanism // nil: no SASL
	User    string         // the SASL user, for messages
	Timeout time.Duration  // for setting up a connection, including TLS and SASL
}

// Robust wraps a transport for long use by a consumer: it reports a missing right as the reason that a
// partition is not found, and closes connections that a broker has muted.
func Robust(transport kafka.RoundTripper) kafka.RoundTripper { return authAware{unmuting{transport}} }

// Mechanisms are the names of the supported SASL mechanisms, as Kafka writes them.
var Mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// Mechanism returns the SASL mechanism of that name for a user.
func Mechanism(name, username, password string) (sasl.Mechanism, error) {
	var m sasl.Mechanism
	var err error
	switch name {
	case "PLAIN":
		return plain.Mechanism{Username: username, Password: password}, nil
	case "SCRAM-SHA-256":
		m, err = scram.Mechanism(scram.SHA256, username, password)
	case "SCRAM-SHA-512":
		m, err = scram.Mechanism(scram.SHA512, username, password)
	default:
		return nil, fmt.Errorf("%s isn't one of %v", name, Mechanisms)
	}
	if err != nil {
		// The library's error text may contain a part of the username or password.
		return nil, errors.New("the username or password holds characters that SCRAM can't carry (RFC 4013)")
	}
	return m, nil
}
