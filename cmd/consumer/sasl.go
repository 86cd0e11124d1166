package main

// Who this is to Kafka, and how it is reached: SASL and TLS, the same for every
// command.

import (
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go/sasl"

	"github.com/standings/standings/internal/ingest/connect"
)

type saslConfig struct {
	mechanism    string // none, or one of connect.Mechanisms in lower case
	username     string
	password     string
	passwordFile string
}

const noSASL = "none"

func saslMechanisms() []string {
	words := []string{noSASL}
	for _, m := range connect.Mechanisms {
		words = append(words, strings.ToLower(m))
	}
	return words
}

func kafkaSASLOptions(c *saslConfig) []option {
	all := []option{
		{key: "kafka.sasl.mechanism", def: noSASL, value: choiceValue{&c.mechanism, saslMechanisms()},
			doc: "How the user is proven to the brokers. `plain` sends the password as it is: only with TLS."},
		{key: "kafka.sasl.username", value: textValue{p: &c.username},
			doc: "The user that the brokers know."},
	}
	return append(all, secretOptions("kafka.sasl.password", &c.password, &c.passwordFile, "Its password.")...)
}

// client is what proves the user, nil for nothing.
func (c *saslConfig) client() (sasl.Mechanism, error) {
	if c.mechanism == noSASL {
		return nil, nil //nolint:nilnil // no SASL is what was asked for
	}
	return connect.Mechanism(strings.ToUpper(c.mechanism), c.username, c.password)
}

// validateSASL sees that mechanism, user and password go together.
func validateSASL(c *saslConfig, complain func(key, problem string, args ...any)) {
	switch {
	case c.mechanism == noSASL && (c.username != "" || c.password != ""):
		complain("kafka.sasl.mechanism", "is set beside a user or a password, which it doesn't use: set it to what the brokers offer, %s",
			strings.Join(saslMechanisms()[1:], ", "))
	case c.mechanism == noSASL:
	case c.username == "":
		complain("kafka.sasl.username", "is empty, and kafka.sasl.mechanism %s needs one: set it, or the mechanism to none", c.mechanism)
	case c.password == "":
		complain("kafka.sasl.password", "is empty, and kafka.sasl.mechanism %s needs one: set it or kafka.sasl.password_file", c.mechanism)
	default:
		if _, err := c.client(); err != nil {
			complain("kafka.sasl.username", "can't be used: %v", err)
		}
	}
}

// connection is how brokers are reached. The files may have gone since the
// configuration was checked.
func (c *kafkaConfig) connection() (connect.Way, error) {
	way := connect.Way{Timeout: c.timeout, User: c.sasl.username}
	var err error
	if way.TLS, err = c.tls.client(); err != nil {
		return way, fmt.Errorf("kafka.tls.%w", err)
	}
	if way.SASL, err = c.sasl.client(); err != nil {
		return way, fmt.Errorf("kafka.sasl: %w", err)
	}
	return way, nil
}

// kafkaWarnings says what an operator may not have meant.
func kafkaWarnings(c *kafkaConfig) []string {
	var all []string
	if c.sasl.mechanism == "plain" && !c.tls.enabled {
		all = append(all, "kafka.sasl.mechanism is plain and kafka.tls.enabled is false: the password goes over the network for all to read; "+
			"enable TLS, or use scram-sha-512")
	}
	if c.tls.enabled && c.tls.skipVerify {
		all = append(all, "kafka.tls.skip_verify is true: whoever sits between this and Kafka can read and change everything")
	}
	return all
}
