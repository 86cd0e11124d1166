package redisconn

// One-line descriptions of a mismatch between the configuration and Redis: credentials, certificates, the
// wrong kind of server. If the error alone does not show the cause, another call finds it.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/tlsfault"
)

// ServerMismatchError reports that the configuration and the server do not match. Retrying does not help:
// the operator must change one of them.
type ServerMismatchError struct {
	Server string // the server that replied; empty if it may be any of the addresses
	What   string
	Err    error // the error that led to the check; nil if a reply states the mismatch
}

func (e *ServerMismatchError) Error() string {
	text := e.What
	if e.Server != "" {
		text = e.Server + " " + text
	}
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text
}
func (e *ServerMismatchError) Unwrap() error { return e.Err }

func serverMismatch(what string) error { return &ServerMismatchError{What: what} }

// Explain turns an error of these settings' client into a ServerMismatchError if its cause is a mismatch,
// and returns any other error unchanged. It takes at most the settings' timeout, and at most two seconds.
func (s *Settings) Explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, known := errors.AsType[*ServerMismatchError](err); known {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, min(s.Timeout, 2*time.Second))
	defer cancel()
	servers := s.Addresses
	if _, lost := errors.AsType[*noMasterError](err); lost {
		master, unknown := s.askSentinels(ctx)
		if unknown != nil {
			return unknown
		}
		if master == "" {
			return err
		}
		servers = []string{master}
	}
	if reply, ok := errors.AsType[redis.Error](err); ok {
		if what := s.refusal(cause(reply.Error())); what != "" {
			return &ServerMismatchError{What: what, Err: reply}
		}
		return err
	}
	for _, server := range servers {
		if what := s.probe(ctx, server, err); what != "" {
			return &ServerMismatchError{Server: "Redis at " + server, What: what, Err: root(err)}
		}
	}
	return err
}

// root returns the innermost error, since the mismatch already describes the operation.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// refusal returns what the operator must change, given a server's reply; empty if the reply does not show a
// mismatch.
func (s *Settings) refusal(text string) string {
	who := "the default user"
	if s.Username != "" {
		who = fmt.Sprintf("the user %q (redis.username)", s.Username)
	}
	switch {
	case startsWith(text, "NOAUTH") && s.Username != "" && s.Password == "":
		return "asks for a password: redis.username is set, and redis.password isn't"
	case startsWith(text, "NOAUTH"):
		return "asks for a password: set redis.password, and redis.username for any but the default user"
	case startsWith(text, "WRONGPASS"):
		return "doesn't take redis.password for " + who + ": the password is wrong, or there is no such user, or it is off"
	case strings.HasPrefix(text, "AUTH <password> called without any password configured"):
		return "has no password for the default user: leave redis.password empty"
	case strings.HasPrefix(text, "DB index is out of range"), strings.HasPrefix(text, "SELECT is not allowed in cluster mode"):
		return fmt.Sprintf("has no database %d: see redis.db", s.DB)
	case strings.HasPrefix(text, "This instance has cluster support disabled"):
		return notOfACluster
	case startsWith(text, "READONLY") && s.Master == "" && !s.clustered():
		return "is a replica, and takes no writes: give its master's address, or the Sentinels' and redis.sentinel.master"
	}
	return ""
}

// probe describes what prevents a connection to a server. It uses the error and, if that is only a closed
// or silent connection, another attempt.
func (s *Settings) probe(ctx context.Context, address string, err error) string {
	if h, ok := errors.AsType[*handshakeError](err); ok && h.address != address {
		return ""
	}
	if s.TLS == nil {
		if closed(err) {
			return tlsfault.Unwanted(ctx, "redis", address)
		}
		return ""
	}
	host, _, _ := net.SplitHostPort(address) // validated with the configuration
	server := tlsfault.Server{Section: "redis", Addresses: "redis.addresses", Host: host, TLS: s.TLS, Asked: true}
	if what := server.Explain(err); what != "" {
		return what
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain || silent(err) && speaksPlain(ctx, address) {
		return server.Plain()
	}
	if closed(err) {
		// A server that closes a connection before it has read everything loses its own alert.
		return server.Explain(s.listen(ctx, address))
	}
	return ""
}

// closed reports whether the peer closed the connection without a reply.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// silent reports whether a handshake got no valid reply.
func silent(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return closed(err) || ok && late.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// listen opens a TLS connection and only reads. The error is the server's reason for closing it.
func (s *Settings) listen(ctx context.Context, address string) error {
	conn, err := s.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // an accepting server is silent
	_, err = conn.Read(make([]byte, 1))
	return err
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

// askSentinels asks every Sentinel for the master. If none knows it, askSentinels returns the first
// mismatch that one reports.
func (s *Settings) askSentinels(ctx context.Context) (master string, why error) {
	masters, reasons := make([]string, len(s.Addresses)), make([]error, len(s.Addresses))
	var asked sync.WaitGroup
	for i, address := range s.Addresses {
		asked.Go(func() { masters[i], reasons[i] = s.askSentinel(ctx, address) })
	}
	asked.Wait()
	for i := range masters {
		if masters[i] != "" {
			return masters[i], nil
		}
		if why == nil {
			why = reasons[i]
		}
	}
	return "", why
}

func (s *Settings) askSentinel(ctx context.Context, address string) (string, error) {
	c := redis.NewSentinelClient(&redis.Options{
		Addr: address, Username: s.SentinelUsername, Password: s.SentinelPassword, Dialer: s.dial,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: s.Timeout, ReadTimeout: s.Timeout, WriteTimeout: s.Timeout,
		ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	defer func() { _ = c.Close() }()
	at, err := c.GetMasterAddrByName(ctx, s.Master).Result()
	if err == nil {
		return net.JoinHostPort(at[0], at[1]), nil
	}
	err = s.withoutPasswords(err)
	var what string
	if errors.Is(err, redis.Nil) {
		what, err = s.unknownMaster(ctx, c), nil
	} else if reply, ok := errors.AsType[redis.Error](err); ok {
		what = sentinelRefusal(cause(reply.Error()))
	} else {
		what = s.probe(ctx, address, err)
		err = root(err)
	}
	if what == "" {
		return "", nil
	}
	return "", &ServerMismatchError{Server: "Sentinel " + address, What: what, Err: err}
}

// unknownMaster describes an unknown master name, and lists the known ones.
func (s *Settings) unknownMaster(ctx context.Context, c *redis.SentinelClient) string {
	var names []string
	all, _ := c.Masters(ctx).Result() // only adds detail
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
		return fmt.Sprintf("watches no master named %q: see redis.sentinel.master", s.Master)
	}
	return fmt.Sprintf("watches no master named %q but %s: see redis.sentinel.master", s.Master, strings.Join(names, ", "))
}

func sentinelRefusal(text string) string {
	switch {
	case startsWith(text, "NOAUTH"):
		return "asks for a password: set redis.sentinel.password, and redis.sentinel.username for any but the default user"
	case startsWith(text, "WRONGPASS"):
		return "doesn't take redis.sentinel.password for redis.sentinel.username"
	case startsWith(text, "NOPERM"):
		return "doesn't let redis.sentinel.username ask for the master"
	case strings.HasPrefix(text, "unknown command"):
		return "isn't a Sentinel: where redis.sentinel.master is set, redis.addresses are the Sentinels'"
	}
	return ""
}
