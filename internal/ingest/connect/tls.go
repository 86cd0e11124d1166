package connect

// What TLS, and the want of it, look like when they go wrong.

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

// notOpened says why there is no connection.
func (k *knocker) notOpened(ctx context.Context, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); k.TLS == nil || ok && op.Op == "dial" {
		return err
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(bad.UnverifiedCertificates) > 0 {
		return k.refusal(err, "shows a certificate that %s", k.unfit(bad.UnverifiedCertificates[0], bad.Err))
	}
	if alert(err) {
		return k.alerted(err)
	}
	// What isn't TLS hangs up on it, or answers something else.
	if c, plain := k.open(ctx, nil); plain == nil {
		defer c.Close() //nolint:errcheck // nothing was written that matters
		if negotiate(ctx, c) == nil {
			return k.refusal(err, "speaks without TLS on this port, and kafka.tls.enabled is true: set it to false, or use a port with TLS")
		}
	}
	return err
}

// notTalking says why a broker doesn't answer the first request.
func (k *knocker) notTalking(ctx context.Context, err error) error {
	if k.TLS != nil {
		if alert(err) { // by TLS 1.3 a client is refused after the handshake
			return k.alerted(err)
		}
		return err
	}
	c, refused := k.open(ctx, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is said but whether it is TLS
	if refused == nil {
		_ = c.Close()
	}
	if refused == nil || alert(refused) {
		return k.refusal(err, "speaks TLS on this port, and kafka.tls.enabled is false")
	}
	return err
}

// alert reports whether the other side ended TLS and said why.
func alert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// alerted is a refusal by the broker, mostly of the client's certificate.
func (k *knocker) alerted(err error) error {
	why := strings.TrimPrefix(errors.Unwrap(opOf(err)).Error(), "tls: ")
	if !k.asked {
		return k.refusal(err, "refuses TLS: %s", why)
	}
	if k.TLS.GetClientCertificate == nil {
		return k.refusal(err, "asks for a client's certificate (%s): set kafka.tls.cert_file and kafka.tls.key_file", why)
	}
	shown := "that of kafka.tls.cert_file"
	if pair, err := k.TLS.GetClientCertificate(new(tls.CertificateRequestInfo)); err == nil && pair.Leaf != nil {
		shown = fmt.Sprintf("%s, issued by %s, valid until %s", pair.Leaf.Subject, pair.Leaf.Issuer, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return k.refusal(err, "refuses the client's certificate (%s): %s", why, shown)
}

func opOf(err error) *net.OpError {
	op, _ := errors.AsType[*net.OpError](err)
	return op
}

// unfit says what is wrong with a broker's certificate.
func (k *knocker) unfit(c *x509.Certificate, err error) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, another := errors.AsType[x509.HostnameError](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired && time.Now().Before(c.NotBefore):
		return fmt.Sprintf("is valid from %s on only: see both clocks", c.NotBefore.UTC().Format(time.RFC3339))
	case isInvalid && invalid.Reason == x509.Expired && time.Now().After(c.NotAfter):
		return "expired at " + c.NotAfter.UTC().Format(time.RFC3339)
	case another:
		wanted := k.TLS.ServerName
		if wanted == "" {
			wanted = k.host()
		}
		return fmt.Sprintf("is for %s, and not for %s: see kafka.brokers, or set kafka.tls.server_name", names(c), wanted)
	case unknown && k.TLS.RootCAs == nil:
		return fmt.Sprintf("is signed by %s, whom this system doesn't trust: set kafka.tls.ca_file", c.Issuer)
	case unknown:
		return fmt.Sprintf("is signed by %s, whom kafka.tls.ca_file doesn't hold", c.Issuer)
	}
	return "isn't good: " + err.Error()
}

// names are whom a certificate is for.
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
