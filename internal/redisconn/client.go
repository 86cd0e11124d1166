// Package redisconn connects to Redis, whatever kind of deployment it is: one server, a
// cluster, or the master that Sentinels name. It knows nothing of what is kept there.
//
// What it promises whoever calls:
//
//   - few of the calls that take long are on their way to a server at once (turns.go);
//   - a call ends with its context, also while Redis is silent (calls.go), and only a client
//     that does nothing but read tries again by itself (reads.go);
//   - an answer never shows a password (passwords.go);
//   - an error is classified by one table: it may pass, or it asks for an operator
//     (classify.go). A missing right is named (rights.go), and so is what doesn't fit between
//     the settings and the server that answers (mismatch.go);
//   - a scan goes by one server's cursors, over a failover too (scan.go).
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

// Settings say how to reach Redis: one server, a cluster, or whichever server the
// Sentinels name as a master.
type Settings struct {
	// Addresses, host:port, are the server's, some of a cluster's nodes, or some of the
	// Sentinels where Master is set. Several without Master are a cluster's.
	Addresses []string
	Cluster   bool   // even one address is a cluster's
	Master    string // the name of the master that the Sentinels watch

	Username, Password                 string
	SentinelUsername, SentinelPassword string

	// ReadsOnly says that its calls only read: one whose connection is cut off is made again.
	ReadsOnly bool

	DB      int
	TLS     *tls.Config // for the Sentinels, too; nil for none
	Timeout time.Duration
	// Network opens a connection; nil is the machine's network.
	Network func(ctx context.Context, network, address string) (net.Conn, error)
	// Connected is called with every new connection to a server of ours before it is
	// used, from any goroutine; an error ends the connection and is the call's. nil is
	// none.
	Connected func(context.Context, *redis.Conn) error

	calls *calls // of the client that is made of it; nil for one that doesn't hear of cancelled calls
}

func (s *Settings) clustered() bool { return s.Master == "" && (s.Cluster || len(s.Addresses) > 1) }

// NewClient makes a client that doesn't try again by itself where it writes, since every
// retry goes through the ledger, and that ends a call with its context. All that is read
// is read from masters. (A cluster's client follows slots that move, and may send a
// call again on the way: the ledger makes that harmless.)
func NewClient(s Settings) redis.UniversalClient {
	s.calls = newCalls(s.Timeout)
	o := s.options()
	switch {
	case s.clustered():
		c := o.Cluster()
		// What goes where is in the keys. Asking the server would need the right to
		// COMMAND, and without it a try of every call.
		c.DisableRoutingPolicies = true
		// A master that died names no successor, and a minute is long.
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

// options are what all clients have.
func (s *Settings) options() *redis.UniversalOptions {
	// Of a call that calls.go knows its deadline counts, which go-redis takes only if its
	// own, by a clock of 50 ms, is later.
	timeout := s.Timeout + time.Second
	return &redis.UniversalOptions{
		Addrs: s.Addresses, Username: s.Username, Password: s.Password, DB: s.DB,
		MasterName: s.Master, SentinelUsername: s.SentinelUsername, SentinelPassword: s.SentinelPassword,
		MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: s.Timeout, DialerRetries: 1, ReadTimeout: timeout, WriteTimeout: timeout,
		DisableIdentity:          true, // CLIENT SETINFO is younger than Redis 6.2
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect:                s.greet, Dialer: s.dial,
	}
}

// hook gives a server's client its hooks, the outermost first.
func (s *Settings) hook(c *redis.Client) {
	if s.clustered() {
		c.AddHook(slotsInHalf{s.Timeout})
	}
	c.AddHook(newTurns())
	c.AddHook(s.calls)
	if s.ReadsOnly {
		c.AddHook(newReadsAgain(s.Timeout))
	}
	c.AddHook(hidesPasswords{s})
}

// dial opens a connection. It is given a dialer of our own, so TLS is its, too.
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
	// Less than a call has, so that the call's error says that it was this.
	shaking, cancel := context.WithTimeout(ctx, s.Timeout/2)
	defer cancel()
	secure := tls.Client(conn, s.tlsFor(address))
	if err := secure.HandshakeContext(shaking); err != nil {
		_ = conn.Close() // its error says less
		return nil, &handshakeError{address, err}
	}
	return secure, nil
}

// tlsFor is the configuration for one server.
func (s *Settings) tlsFor(address string) *tls.Config {
	if s.TLS.ServerName != "" {
		return s.TLS
	}
	c := s.TLS.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address) // checked with the configuration
	return c
}

// handshakeError says with whom TLS couldn't be agreed upon.
type handshakeError struct {
	address string
	err     error
}

func (e *handshakeError) Error() string {
	return fmt.Sprintf("TLS handshake with %s: %v", e.address, e.err)
}
func (e *handshakeError) Unwrap() error { return e.err }

// viaSentinels tags what goes wrong on the way to the master. Else an answer of a
// Sentinel would be taken for the master's: "no such master" for "no such field".
type viaSentinels struct{}

func (viaSentinels) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, &noMasterError{err}
		}
		return conn, nil
	}
}
func (viaSentinels) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (viaSentinels) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// noMasterError says that no master could be reached through the Sentinels. It
// doesn't unwrap to their answers, which are none of the master's.
type noMasterError struct{ err error }

func (e *noMasterError) Error() string { return "no master by the Sentinels: " + e.err.Error() }

// greet is what happens with a new connection before it is used.
func (s *Settings) greet(ctx context.Context, c *redis.Conn) error {
	mode, role, err := modeOf(ctx, c)
	if err != nil || mode == "sentinel" && s.Master != "" {
		return err // a Sentinel on the way: it has no standings to look after
	}
	if err := s.checkMode(mode); err != nil {
		return err
	}
	if s.Master != "" && role != "" && role != "master" {
		return &demotedError{role} // what it has may be old, and what was behind is lost
	}
	// For CLIENT LIST alone. Whose user has no right to it does without: as an
	// option it would make every connection fail.
	if err := c.ClientSetName(ctx, "standings").Err(); err != nil && !unavailable(err) {
		return err
	}
	if s.Connected == nil {
		return nil
	}
	return s.Connected(ctx, c)
}

// modeOf is what a server reports itself to be in answer to HELLO, which needs no right:
// standalone, cluster or sentinel, and a master or a replica. Both are empty if it doesn't
// report them: where a proxy answers, or a fake.
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

// checkMode compares what a server is with what the settings say.
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
