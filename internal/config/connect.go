package config

// The connections to Kafka and Redis: TLS for both, and the Kafka user (SASL), the same for every command.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"

	"github.com/standings/standings/internal/kafkaconn"
)

// TLS has the settings for verifying servers, and the client certificate.
type TLS struct {
	Enabled    bool
	CAFile     string
	CertFile   string
	KeyFile    string
	ServerName string
	SkipVerify bool
}

// tlsOptions declares the TLS settings of kafka or redis.
func tlsOptions(section string, c *TLS) []option {
	section += ".tls."
	return []option{
		{Key: section + "enabled", def: "false", value: boolValue(&c.Enabled),
			doc: "Connect with TLS 1.2 or later."},
		{Key: section + "ca_file", value: pemPathValue(&c.CAFile),
			doc: "PEM certificates that may sign the servers' certificates. Empty: the system's. Read at start."},
		{Key: section + "cert_file", value: pemPathValue(&c.CertFile),
			doc: "PEM client certificate (mTLS) with its intermediates. Read for every connection, so it can be renewed."},
		{Key: section + "key_file", value: pemPathValue(&c.KeyFile),
			doc: "Its PEM private key, not encrypted."},
		{Key: section + "server_name", value: textValue(&c.ServerName, "a host's name", nil),
			doc: "Name in the servers' certificates, if it is not the one in their addresses."},
		{Key: section + "skip_verify", def: "false", value: boolValue(&c.SkipVerify),
			doc: "Accept any certificate. Not for production: an attacker in between can read and change everything."},
	}
}

// TLSError describes what is wrong with one of the files, or with their combination.
type TLSError struct {
	Setting string // such as ca_file
	Problem string
}

func (p *TLSError) Error() string { return p.Setting + " " + p.Problem }

// Client returns the TLS configuration for connecting, nil if TLS is off. Its errors are TLSErrors.
func (c *TLS) Client() (*tls.Config, error) {
	if !c.Enabled {
		for setting, path := range map[string]string{"ca_file": c.CAFile, "cert_file": c.CertFile, "key_file": c.KeyFile} {
			if path != "" {
				return nil, &TLSError{setting, "is set, but tls.enabled is false"}
			}
		}
		return nil, nil //nolint:nilnil // no TLS is what was asked for
	}
	t := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.ServerName,
		InsecureSkipVerify: c.SkipVerify, //nolint:gosec // asked for, and warned of
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, &TLSError{"ca_file", unreadable(err).Error()}
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &TLSError{"ca_file", "contains no PEM certificate"}
		}
	}
	switch {
	case c.CertFile == "" && c.KeyFile == "":
		return t, nil
	case c.KeyFile == "":
		return nil, &TLSError{"key_file", "is required with cert_file"}
	case c.CertFile == "":
		return nil, &TLSError{"cert_file", "is required with key_file"}
	}
	if _, err := c.Pair(); err != nil {
		return nil, err
	}
	// Read the files for each connection: certificates are renewed while the process runs, and handshakes are
	// rare enough.
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Pair() }
	return t, nil
}

// Pair reads the certificate and its key.
func (c *TLS) Pair() (*tls.Certificate, error) {
	cert, err := os.ReadFile(c.CertFile)
	if err != nil {
		return nil, &TLSError{"cert_file", unreadable(err).Error()}
	}
	key, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, &TLSError{"key_file", unreadable(err).Error()}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &TLSError{"cert_file", "and key_file do not match: " + err.Error()}
	}
	return &pair, nil
}

// validateTLS checks the files of a section.
func validateTLS(section string, c *TLS, complain func(key, problem string, args ...any)) {
	_, err := c.Client()
	if p, ok := errors.AsType[*TLSError](err); ok {
		complain(section+".tls."+p.Setting, "%s", p.Problem)
	}
}

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
