// Package redisconn connects to Redis: a single server, a cluster, or the master that Sentinels name. It
// knows nothing of the data in it.
//
// It guarantees its callers:
//
//   - Few long calls are in flight to a server at the same time (turns.go).
//   - A call ends with its context, even if Redis does not reply (calls.go). Only a client that is used for
//     reads alone retries calls by itself (reads.go).
//   - An error never contains a password (passwords.go).
//   - One table classifies errors as transient, or as requiring the operator (classify.go). Errors name a
//     missing right (rights.go), and a mismatch between the settings and the server (mismatch.go).
//   - A loop over SCAN cursors is repeated if a failover changes the server (scan.go).
package redisconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Settings describe how to reach Redis: a single server, a cluster, or the master that Sentinels name.
type Settings struct {
	// Addresses, host:port, are those of the single server, of some nodes of a cluster, or, if Master is
	// set, of some Sentinels. Several addresses without Master mean a cluster.
	Addresses []string
	Cluster   bool   // a cluster, even with a single address
	Master    string // the name of the master that the Sentinels watch

	Username, Password                 string
	SentinelUsername, SentinelPassword string

	// ReadsOnly states that the client is used for reads alone: a call whose connection is cut is repeated.
	ReadsOnly bool

	DB      int
	TLS     *tls.Config // also for the Sentinels; nil for none
	Timeout time.Duration
	// Network opens a connection; nil means the machine's network.
	Network func(ctx context.Context, network, address string) (net.Conn, error)
	// Connected, if not nil, is called with every new connection to a Redis server before its first use,
	// from any goroutine. If it returns an error, the connection is closed and the call returns that error.
	Connected func(context.Context, *redis.Conn) error

	calls *calls // of the client made from these settings; nil if the client does not handle cancelled calls
}

func (s *Settings) clustered() bool { return s.Master == "" && (s.Cluster || len(s.Addresses) > 1) }

// NewClient returns a client that does not retry writes, since every retry must compare the ledger first,
// and that ends a call with its context. All reads go to masters. (A cluster client follows moved slots,
// and may send a call again to another node. The ledger makes that harmless.)
func NewClient(s Settings) redis.UniversalClient {
	s.calls = newCalls(s.Timeout)
	o := s.options()
	switch {
	case s.clustered():
		c := o.Cluster()
		// The keys determine the node. Asking the server for routing would require the right to COMMAND
		// and, without that right, a failed attempt for every call.
		c.DisableRoutingPolicies = true
		// Redis does not announce the successor of a dead master, and the default interval is a minute.
		c.ClusterStateReloadInterval = time.Second
		client := redis.NewClusterClient(c)
		client.OnNewNode(s.hook)
		return client
	case s.Master != "":
		c := redis.NewFailoverClient(o.Failover())
		c.AddHook(viaSentinels{})
		s.hook(c)
		return c
	}
	c := redis.NewClient(o.Simple())
	s.hook(c)
	return c
}

// options returns the options of all clients.
func (s *Settings) options() *redis.UniversalOptions {
	// calls.go sets each call's deadline. go-redis uses the context's deadline only if its own timeout, by
	// a clock with a resolution of 50 ms, ends later.
	timeout := s.Timeout + time.Second
	return &redis.UniversalOptions{
		Addrs: s.Addresses, Username: s.Username, Password: s.Password, DB: s.DB,
		MasterName: s.Master, SentinelUsername: s.SentinelUsername, SentinelPassword: s.SentinelPassword,
		MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: s.Timeout, DialerRetries: 1, ReadTimeout: timeout, WriteTimeout: timeout,
		DisableIdentity:          true, // CLIENT SETINFO requires a later version than Redis 6.2
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect:                s.greet, Dialer: s.dial,
	}
}

// hook adds the hooks to the client of one server, the outermost first.
func (s *Settings) hook(c *redis.Client) {
	if s.clustered() {
		c.AddHook(slotsInHalf{timeout: s.Timeout})
	}
	c.AddHook(newTurns())
	c.AddHook(s.calls)
	if s.ReadsOnly {
		c.AddHook(newReadsAgain(s.Timeout))
	}
	c.AddHook(hidesPasswords{s})
}

// unhooked is a redis.Hook that changes nothing. Hooks embed it for what they do not hook.
type unhooked struct{}

func (unhooked) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (unhooked) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (unhooked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dial opens a connection. A client with its own dialer must also do TLS itself.
func (s *Settings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	open := s.Network
	if open == nil {
		open = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	conn, err := open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if s.calls != nil {
		conn = s.calls.conn(conn)
	}
	if s.TLS == nil {
		return conn, nil
	}
	// Half the timeout, so that the handshake fails before the call does and its error is reported.
	shaking, cancel := context.WithTimeout(ctx, s.Timeout/2)
	defer cancel()
	secure := tls.Client(conn, s.tlsFor(address))
	if err := secure.HandshakeContext(shaking); err != nil {
		_ = conn.Close() // the handshake's error is more precise
		return nil, &handshakeError{address, err}
	}
	return secure, nil
}

// tlsFor returns the TLS configuration for one server.
func (s *Settings) tlsFor(address string) *tls.Config {
	if s.TLS.ServerName != "" {
		return s.TLS
	}
	c := s.TLS.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address) // validated with the configuration
	return c
}

// handshakeError names the server of a failed TLS handshake.
type handshakeError struct {
	address string
	err     error
}

func (e *handshakeError) Error() string {
	return fmt.Sprintf("TLS handshake with %s: %v", e.address, e.err)
}
func (e *handshakeError) Unwrap() error { return e.err }

// viaSentinels marks errors on the way to the master. Otherwise a Sentinel's reply would be taken for the
// master's: "no such master" for "no such field".
type viaSentinels struct{ unhooked }

func (viaSentinels) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, &noMasterError{err}
		}
		return conn, nil
	}
}

// noMasterError reports that no master could be reached through the Sentinels. It does not unwrap to their
// replies, which are not the master's.
type noMasterError struct{ err error }

func (e *noMasterError) Error() string { return "no master by the Sentinels: " + e.err.Error() }

// greet checks a new connection before its first use.
func (s *Settings) greet(ctx context.Context, c *redis.Conn) error {
	mode, role, err := modeOf(ctx, c)
	if err != nil || mode == "sentinel" && s.Master != "" {
		return err // a connection to a Sentinel: it holds no standings
	}
	if err := s.checkMode(mode); err != nil {
		return err
	}
	if s.Master != "" && role != "" && role != "master" {
		return &demotedError{role} // its data may be old, and writes to it are lost
	}
	// The name is only shown in CLIENT LIST, so a missing right is ignored. As a go-redis option it would
	// make every connection fail.
	if err := c.ClientSetName(ctx, "standings").Err(); err != nil && !unavailable(err) {
		return err
	}
	if s.Connected == nil {
		return nil
	}
	return s.Connected(ctx, c)
}

// modeOf returns the mode and the role that a server reports in its reply to HELLO, which requires no
// right: standalone, cluster or sentinel, and master or replica. Both are empty if the server, such as a
// proxy or a fake, does not report them.
func modeOf(ctx context.Context, c *redis.Conn) (mode, role string, err error) {
	command := redis.NewMapStringInterfaceCmd(ctx, "hello")
	if err := c.Process(ctx, command); err != nil && !unavailable(err) {
		return "", "", err
	}
	mode, _ = command.Val()["mode"].(string)
	role, _ = command.Val()["role"].(string)
	return mode, role, nil
}

const notOfACluster = "isn't a cluster's node: for a single server give one address and leave redis.cluster false, " +
	"for Sentinels set redis.sentinel.master"

// checkMode compares the server's mode with the settings.
func (s *Settings) checkMode(mode string) error {
	switch {
	case mode == "sentinel":
		return serverMismatch("is a Sentinel: name the master that it watches by redis.sentinel.master")
	case mode == "cluster" && !s.clustered():
		return serverMismatch("is a node of a cluster: set redis.cluster: true, or give several nodes in redis.addresses")
	case mode == "standalone" && s.clustered():
		return serverMismatch(notOfACluster)
	}
	return nil
}
