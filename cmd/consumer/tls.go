package main

// TLS, the same for Kafka and Redis: whom to trust, and which certificate to show.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
)

type tlsConfig struct {
	enabled    bool
	caFile     string
	certFile   string
	keyFile    string
	serverName string
	skipVerify bool
}

// tlsOptions declares the settings of one side, kafka or redis.
func tlsOptions(section string, c *tlsConfig) []option {
	section += ".tls."
	return []option{
		{key: section + "enabled", def: "false", value: boolValue{&c.enabled},
			doc: "Connect by TLS 1.2 or later."},
		{key: section + "ca_file", value: textValue{p: &c.caFile, what: "a path"},
			doc: "Who may sign the servers' certificates: PEM. Empty for those whom the system trusts. Read at start."},
		{key: section + "cert_file", value: textValue{p: &c.certFile, what: "a path"},
			doc: "The certificate to show to the servers (mTLS), with those between it and its root: PEM. Read anew for every connection, so it can be renewed."},
		{key: section + "key_file", value: textValue{p: &c.keyFile, what: "a path"},
			doc: "Its private key: PEM, not encrypted."},
		{key: section + "server_name", value: textValue{p: &c.serverName, what: "a host's name"},
			doc: "The name that the servers' certificates are for, if it isn't the one in their addresses."},
		{key: section + "skip_verify", def: "false", value: boolValue{&c.skipVerify},
			doc: "Trust any certificate: whoever sits in between can read and change everything. Not for production."},
	}
}

// tlsError is what is wrong with one of the files, or with how they go together.
type tlsError struct {
	setting string // within the section
	problem string
}

func (p *tlsError) Error() string { return p.setting + " " + p.problem }

// client is the configuration for dialling, nil for none. Its errors are tlsErrors.
func (c *tlsConfig) client() (*tls.Config, error) {
	if !c.enabled {
		for setting, path := range map[string]string{"ca_file": c.caFile, "cert_file": c.certFile, "key_file": c.keyFile} {
			if path != "" {
				return nil, &tlsError{setting, "is set, but tls.enabled is false"}
			}
		}
		return nil, nil //nolint:nilnil // no TLS is what was asked for
	}
	t := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.serverName,
		InsecureSkipVerify: c.skipVerify, //nolint:gosec // asked for, and warned of
	}
	if c.caFile != "" {
		pem, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, &tlsError{"ca_file", unreadable(err).Error()}
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &tlsError{"ca_file", "holds no PEM certificate"}
		}
	}
	switch {
	case c.certFile == "" && c.keyFile == "":
		return t, nil
	case c.keyFile == "":
		return nil, &tlsError{"key_file", "is empty, and the certificate needs its key"}
	case c.certFile == "":
		return nil, &tlsError{"cert_file", "is empty, and the key needs its certificate"}
	}
	if _, err := c.pair(); err != nil {
		return nil, err
	}
	// Read for each connection: certificates are renewed while the process runs, and
	// a handshake is rare beside reading two files.
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.pair() }
	return t, nil
}

// pair reads the certificate and its key.
func (c *tlsConfig) pair() (*tls.Certificate, error) {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return nil, &tlsError{"cert_file", unreadable(err).Error()}
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return nil, &tlsError{"key_file", unreadable(err).Error()}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &tlsError{"cert_file", "and its key don't make a pair: " + err.Error()}
	}
	return &pair, nil
}

// validateTLS holds a section's files to what TLS needs of them.
func validateTLS(section string, c *tlsConfig, complain func(key, problem string, args ...any)) {
	_, err := c.client()
	if p, ok := errors.AsType[*tlsError](err); ok {
		complain(section+".tls."+p.setting, "%s", p.problem)
	}
}
