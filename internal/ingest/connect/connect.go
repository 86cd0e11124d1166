// Package connect reaches Kafka's brokers: by TLS or without, with a user or
// without, the same for kafka-go's transport, its dialer and whoever asks why a
// broker can't be reached.
package connect

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

// Way is how to reach a broker.
type Way struct {
	TLS     *tls.Config    // nil: without
	SASL    sasl.Mechanism // nil: without
	User    string         // whom SASL proves, for messages
	Timeout time.Duration  // of a connection, until it can be used
}

// Transport is a transport for some topics: without the list every refresh of its
// metadata asks for all topics there are. refresh is how often that is, and the
// timeout of the request, too.
func (w Way) Transport(refresh time.Duration, topics ...string) *kafka.Transport {
	return &kafka.Transport{
		ClientID: ClientID, DialTimeout: w.Timeout, IdleTimeout: time.Minute,
		TLS: w.TLS, SASL: w.SASL, MetadataTTL: refresh, MetadataTopics: topics,
	}
}

// Dialer is for kafka-go's consumer group, which doesn't use a transport.
func (w Way) Dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: ClientID, Timeout: w.Timeout, DualStack: true, TLS: w.TLS, SASLMechanism: w.SASL}
}

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
