package ranking

// What stands between a configuration and its Redis, told in one line: credentials,
// certificates, the wrong kind of server. Where an error alone doesn't tell, the
// servers are asked again.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// MisfitError says that the configuration and what answers don't fit together: one of
// them has to be changed, and time doesn't do it.
type MisfitError struct {
	Server string // whose answer it was; empty where any of the addresses gave it
	What   string
	Err    error // what it was told by; nil where an answer said it outright
}

func (e *MisfitError) Error() string {
	text := e.What
	if e.Server != "" {
		text = e.Server + " " + text
	}
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text
}
func (e *MisfitError) Unwrap() error { return e.Err }

func misfit(what string) error { return &MisfitError{What: what} }

// Explain turns an error of this Dial's client into a MisfitError where it is one. Any
// other is returned as it is. It may take as long as the Dial's timeout.
func (d *Dial) Explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, known := errors.AsType[*MisfitError](err); known {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, min(d.Timeout, 2*time.Second))
	defer cancel()
	servers := d.Addresses
	if _, lost := errors.AsType[*noMasterError](err); lost {
		master, unknown := d.askSentinels(ctx)
		if unknown != nil {
			return unknown
		}
		if master == "" {
			return err
		}
		servers = []string{master}
	}
	if reply, ok := errors.AsType[redis.Error](err); ok {
		if what := d.refusal(cause(reply.Error())); what != "" {
			return &MisfitError{What: what, Err: reply}
		}
		return err
	}
	for _, server := range servers {
		if what := d.probe(ctx, server, err); what != "" {
			return &MisfitError{Server: "Redis at " + server, What: what, Err: root(err)}
		}
	}
	return err
}

// root is the innermost error: what was being done is told by the misfit.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// refusal says what a server's answer asks the operator to change; nothing where it
// isn't about that.
func (d *Dial) refusal(text string) string {
	who := "the default user"
	if d.Username != "" {
		who = fmt.Sprintf("the user %q (redis.username)", d.Username)
	}
	switch {
	case says(text, "NOAUTH") && d.Username != "" && d.Password == "":
		return "asks for a password: redis.username is set, and redis.password isn't"
	case says(text, "NOAUTH"):
		return "asks for a password: set redis.password, and redis.username for any but the default user"
	case says(text, "WRONGPASS"):
		return "doesn't take redis.password for " + who + ": the password is wrong, or there is no such user, or it is off"
	case strings.HasPrefix(text, "AUTH <password> called without any password configured"):
		return "has no password for the default user: leave redis.password empty"
	case strings.HasPrefix(text, "DB index is out of range"), strings.HasPrefix(text, "SELECT is not allowed in cluster mode"):
		return fmt.Sprintf("has no database %d: see redis.db", d.DB)
	case strings.HasPrefix(text, "This instance has cluster support disabled"):
		return notOfACluster
	case says(text, "READONLY") && d.Master == "" && !d.clustered():
		return "is a replica, and takes no writes: give its master's address, or the Sentinels' and redis.sentinel.master"
	}
	return ""
}

// probe says what is wrong with the way to a server, as seen from an error and, where
// that is only a closed or silent connection, from another try.
func (d *Dial) probe(ctx context.Context, address string, err error) string {
	if h, ok := errors.AsType[*handshakeError](err); ok && h.address != address {
		return ""
	}
	if what := d.ofTLS(err); what != "" {
		return what
	}
	switch {
	case d.TLS == nil && closed(err) && speaksTLS(ctx, address):
		return "speaks TLS: set redis.tls.enabled: true"
	case d.TLS != nil && silent(err) && speaksPlain(ctx, address):
		return "doesn't speak TLS on this port: give its TLS port, or set redis.tls.enabled: false"
	case d.TLS != nil && closed(err):
		// Its alert is lost where it closed a connection before reading what we sent.
		return d.ofTLS(d.listen(ctx, address))
	}
	return ""
}

// ofTLS says what an error of TLS itself asks for.
func (d *Dial) ofTLS(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "doesn't speak TLS on this port: give its TLS port, or set redis.tls.enabled: false"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "shows a certificate for another name: set redis.tls.server_name, or have that name in the certificate"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "shows a certificate whose signer isn't trusted: set redis.tls.ca_file"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "shows a certificate that has expired, or isn't valid yet"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "shows a certificate that can't be trusted"
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" {
		if d.TLS != nil && d.TLS.GetClientCertificate == nil {
			return "refuses the TLS connection; it asks for a client certificate: set redis.tls.cert_file and redis.tls.key_file"
		}
		return "refuses the TLS connection; most likely it doesn't trust redis.tls.cert_file"
	}
	return ""
}

// closed reports whether the other side ended the connection without a word.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// silent reports whether a handshake got no sensible answer.
func silent(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return closed(err) || ok && late.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// listen makes a connection by TLS and only reads: what comes is the reason why the
// server ends it.
func (d *Dial) listen(ctx context.Context, address string) error {
	conn, err := d.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // a server that is content stays silent
	_, err = conn.Read(make([]byte, 1))
	return err
}

func speaksTLS(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // nothing is sent
	alert, ok := errors.AsType[*net.OpError](err)
	return err == nil || ok && alert.Op == "remote error"
}

func speaksPlain(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	first := make([]byte, 1)
	if _, err = io.WriteString(conn, "PING\r\n"); err == nil {
		_, err = io.ReadFull(conn, first)
	}
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// askSentinels asks every Sentinel for the master. If none knows it, and one says
// why, that is the misfit.
func (d *Dial) askSentinels(ctx context.Context) (master string, why error) {
	type answer struct {
		master string
		why    error
	}
	answers := make([]chan answer, len(d.Addresses))
	for i, address := range d.Addresses {
		answers[i] = make(chan answer, 1)
		go func() {
			m, err := d.askSentinel(ctx, address)
			answers[i] <- answer{m, err}
		}()
	}
	for _, c := range answers {
		a := <-c
		if a.master != "" {
			master = a.master
		}
		if why == nil {
			why = a.why
		}
	}
	if master != "" {
		return master, nil
	}
	return "", why
}

func (d *Dial) askSentinel(ctx context.Context, address string) (string, error) {
	c := redis.NewSentinelClient(&redis.Options{
		Addr: address, Username: d.SentinelUsername, Password: d.SentinelPassword, Dialer: d.dial,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: d.Timeout, ReadTimeout: d.Timeout, WriteTimeout: d.Timeout,
		ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	defer func() { _ = c.Close() }()
	at, err := c.GetMasterAddrByName(ctx, d.Master).Result()
	if err == nil {
		return net.JoinHostPort(at[0], at[1]), nil
	}
	err = d.withoutPasswords(err)
	var what string
	if errors.Is(err, redis.Nil) {
		what, err = d.unknownMaster(ctx, c), nil
	} else if reply, ok := errors.AsType[redis.Error](err); ok {
		what = sentinelRefusal(cause(reply.Error()))
	} else {
		what = d.probe(ctx, address, err)
		err = root(err)
	}
	if what == "" {
		return "", nil
	}
	return "", &MisfitError{Server: "Sentinel " + address, What: what, Err: err}
}

// unknownMaster names the masters that there are.
func (d *Dial) unknownMaster(ctx context.Context, c *redis.SentinelClient) string {
	var names []string
	all, _ := c.Masters(ctx).Result() // a courtesy
	for _, one := range all {
		switch m := one.(type) {
		case map[any]any:
			names = append(names, fmt.Sprint(m["name"]))
		case []any: // name, value, …
			if i := slices.Index(m, any("name")); i >= 0 && i+1 < len(m) {
				names = append(names, fmt.Sprint(m[i+1]))
			}
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("watches no master named %q: see redis.sentinel.master", d.Master)
	}
	return fmt.Sprintf("watches no master named %q but %s: see redis.sentinel.master", d.Master, strings.Join(names, ", "))
}

func sentinelRefusal(text string) string {
	switch {
	case says(text, "NOAUTH"):
		return "asks for a password: set redis.sentinel.password, and redis.sentinel.username for any but the default user"
	case says(text, "WRONGPASS"):
		return "doesn't take redis.sentinel.password for redis.sentinel.username"
	case says(text, "NOPERM"):
		return "doesn't let redis.sentinel.username ask for the master"
	case strings.HasPrefix(text, "unknown command"):
		return "isn't a Sentinel: where redis.sentinel.master is set, redis.addresses are the Sentinels'"
	}
	return ""
}
