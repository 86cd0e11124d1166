// Package tlsfault explains TLS errors: what is wrong with a certificate, and which setting concerns it. Its
// texts continue a sentence that starts with the server's name: "shows a certificate that expired at …". They
// are the same for Kafka and Redis.
package tlsfault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Server is a server that is connected to with TLS.
type Server struct {
	Section   string // of the settings: kafka
	Addresses string // the setting with its address: kafka.brokers
	Host      string
	TLS       *tls.Config
	// Asked reports whether the server requested a client certificate; true if that is not known.
	Asked bool
}

// Explain explains an error of a handshake, or of the first read after it, in which a TLS 1.3 server refuses a
// client. It returns an empty text if the error alone is not enough.
func (s Server) Explain(err error) string {
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(bad.UnverifiedCertificates) > 0 {
		return "shows a certificate that " + s.unfit(bad.UnverifiedCertificates[0], bad.Err)
	}
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !isAlert(err) {
		return ""
	}
	why := strings.TrimPrefix(op.Err.Error(), "tls: ")
	switch {
	case !s.Asked:
		return "refuses TLS: " + why
	case s.TLS.GetClientCertificate == nil:
		return fmt.Sprintf("asks for a client's certificate (%s): set %s.tls.cert_file and %[2]s.tls.key_file", why, s.Section)
	}
	shown := "that of " + s.Section + ".tls.cert_file"
	if pair, err := s.TLS.GetClientCertificate(new(tls.CertificateRequestInfo)); err == nil && pair.Leaf != nil {
		shown = fmt.Sprintf("%s, issued by %s, valid until %s", pair.Leaf.Subject, pair.Leaf.Issuer, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("refuses the client's certificate (%s): %s", why, shown)
}

// Plain returns the text about a server that does not use TLS although it should.
func (s Server) Plain() string {
	return fmt.Sprintf("speaks without TLS on this port, and %s.tls.enabled is true: set it to false, or use a port with TLS", s.Section)
}

// unfit returns what is wrong with a server's certificate.
func (s Server) unfit(c *x509.Certificate, err error) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, another := errors.AsType[x509.HostnameError](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired && time.Now().Before(c.NotBefore):
		return fmt.Sprintf("is valid from %s on only: see both clocks", c.NotBefore.UTC().Format(time.RFC3339))
	case isInvalid && invalid.Reason == x509.Expired && time.Now().After(c.NotAfter):
		return "expired at " + c.NotAfter.UTC().Format(time.RFC3339)
	case another:
		wanted := s.TLS.ServerName
		if wanted == "" {
			wanted = s.Host
		}
		return fmt.Sprintf("is for %s, and not for %s: see %s, or set %s.tls.server_name", names(c), wanted, s.Addresses, s.Section)
	case unknown && s.TLS.RootCAs == nil:
		return fmt.Sprintf("is signed by %s, whom this system doesn't trust: set %s.tls.ca_file", c.Issuer, s.Section)
	case unknown:
		return fmt.Sprintf("is signed by %s, whom %s.tls.ca_file doesn't hold", c.Issuer, s.Section)
	}
	return "isn't good: " + err.Error()
}

// names returns the hosts for which a certificate is valid.
func names(c *x509.Certificate) string {
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "nobody by name"
	}
	return strings.Join(all, ", ")
}

// isAlert reports whether the server ended TLS with an alert.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// Unwanted returns the text about a server that requires TLS on a connection without TLS; empty if it does not.
func Unwanted(ctx context.Context, section, address string) string {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()                                                                  //nolint:errcheck // nothing was written that matters
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // nothing is said but whether it is TLS
	if err != nil && !isAlert(err) {
		return ""
	}
	return fmt.Sprintf("speaks TLS on this port, and %s.tls.enabled is false", section)
}
