package config

// The Kafka user and connection: SASL and TLS, the same for every command.

import (
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go/sasl"

	"github.com/standings/standings/internal/kafkaconn"
)

// SASL has the Kafka user.
type SASL struct {
	Mechanism    string // none, or one of kafkaconn.Mechanisms in lower case
	Username     string
	Password     string
	PasswordFile string
}

const noSASL = "none"

func saslMechanisms() []string {
	words := []string{noSASL}
	for _, m := range kafkaconn.Mechanisms {
		words = append(words, strings.ToLower(m))
	}
	return words
}

func kafkaSASLOptions(c *SASL) []option {
	all := []option{
		{Key: "kafka.sasl.mechanism", def: noSASL, value: choiceValue(&c.Mechanism, saslMechanisms()),
			doc: "Authentication mechanism. `plain` sends the password in clear text: use it only with TLS."},
		{Key: "kafka.sasl.username", value: textValue(&c.Username, "", nil),
			doc: "User."},
	}
	return append(all, secretOptions("kafka.sasl.password", &c.Password, &c.PasswordFile, "Password.")...)
}

// client returns the SASL mechanism, nil for none.
func (c *SASL) client() (sasl.Mechanism, error) {
	if c.Mechanism == noSASL {
		return nil, nil //nolint:nilnil // no SASL is what was asked for
	}
	return kafkaconn.Mechanism(strings.ToUpper(c.Mechanism), c.Username, c.Password)
}

// validateSASL checks that mechanism, user and password go together.
func validateSASL(c *SASL, complain func(key, problem string, args ...any)) {
	switch {
	case c.Mechanism == noSASL && (c.Username != "" || c.Password != ""):
		complain("kafka.sasl.mechanism", "is not a mechanism for a user and a password: use one of %s",
			strings.Join(saslMechanisms()[1:], ", "))
	case c.Mechanism == noSASL:
	case c.Username == "":
		complain("kafka.sasl.username", "is required for kafka.sasl.mechanism %s: set it, or set the mechanism to none", c.Mechanism)
	case c.Password == "":
		complain("kafka.sasl.password", "is required for kafka.sasl.mechanism %s: set it or kafka.sasl.password_file", c.Mechanism)
	default:
		if _, err := c.client(); err != nil {
			complain("kafka.sasl.username", "can't be used: %v", err)
		}
	}
}

// Connection returns the settings for connections to the brokers. It can fail although the configuration was
// valid, because files may have been removed since.
func (k *Kafka) Connection() (kafkaconn.Settings, error) {
	settings := kafkaconn.Settings{Brokers: k.Brokers, Timeout: k.Timeout, User: k.SASL.Username}
	var err error
	if settings.TLS, err = k.TLS.Client(); err != nil {
		return settings, fmt.Errorf("kafka.tls.%w", err)
	}
	if settings.SASL, err = k.SASL.client(); err != nil {
		return settings, fmt.Errorf("kafka.sasl: %w", err)
	}
	return settings, nil
}
