// Package kafkaconn connects to Kafka's brokers and asks them what any part of this program
// asks them: by TLS or without, with a user or without, the same for kafka-go's transport,
// its dialer and the search for why a broker can't be used. It knows nothing of events.
//
// What it promises whoever calls:
//
//   - every call has a deadline: its client's timeout;
//   - an error is classified by one table: it may pass, or it asks for an operator
//     (classify.go);
//   - a refusal names the broker, what is wrong and which setting is about it, and is never a
//     guess (diagnose.go, tls.go); a missing right is named before it is needed (rights.go);
//   - what the log holds is asked in an order in which a log that grows or is cut meanwhile
//     can't be misread (logs.go).
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

// ClientID names this program to brokers.
const ClientID = "standings"

// Settings are how to reach a broker.
type Settings struct {
	Brokers []string       // the configured addresses
	TLS     *tls.Config    // nil: without
	SASL    sasl.Mechanism // nil: without
	User    string         // whom SASL proves, for messages
	Timeout time.Duration  // of a connection, until it can be used
}

// Robust is a transport as a consumer uses it for long: it says if a partition isn't found for
// want of a right, and keeps no connection that a broker doesn't read from.
func Robust(transport kafka.RoundTripper) kafka.RoundTripper { return authAware{unmuting{transport}} }

// Mechanisms are the names of those that Mechanism knows, as Kafka writes them.
var Mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// Mechanism proves by one of Mechanisms who is there.
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
		// The library's words may hold a part of what was prepared.
		return nil, errors.New("the username or password holds characters that SCRAM can't carry (RFC 4013)")
	}
	return m, nil
}
