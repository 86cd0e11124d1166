package ranking

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Dial says how to reach Redis: one server, a cluster, or whichever server the
// Sentinels name as a master.
type Dial struct {
	// Addresses, host:port, are the server's, some of a cluster's nodes, or some of the
	// Sentinels where Master is set. Several without Master are a cluster's.
	Addresses []string
	Cluster   bool   // even one address is a cluster's
	Master    string // the name of the master that the Sentinels watch

	Username, Password                 string
	SentinelUsername, SentinelPassword string

	DB      int
	TLS     *tls.Config // for the Sentinels, too; nil for none
	Timeout time.Duration
	// Network opens a connection; nil is the machine's network.
	Network func(ctx context.Context, network, address string) (net.Conn, error)
	// Connected is called with every new connection to a server of ours before it is
	// used, from any goroutine; an error ends the connection and is the call's. nil is
	// none.
	Connected func(context.Context, *redis.Conn) error

	calls *calls // of the client that is made of it; nil for one that isn't told of cancelled calls
}

func (d *Dial) clustered() bool { return d.Master == "" && (d.Cluster || len(d.Addresses) > 1) }

// NewClient makes a client that doesn't try again by itself, since every retry
// goes through the ledger, and that ends a call with its context. All that is read
// is read from masters. (A cluster's client follows slots that move, and may send a
// call again on the way: the ledger makes that harmless.)
func NewClient(d Dial) redis.UniversalClient {
	d.calls = newCalls(d.Timeout)
	// Of a call that calls.go knows its deadline counts, which go-redis takes only if its
	// own, by a clock of 50 ms, is later.
	timeout := d.Timeout + time.Second
	o := &redis.UniversalOptions{
		Addrs: d.Addresses, Username: d.Username, Password: d.Password, DB: d.DB,
		MasterName: d.Master, SentinelUsername: d.SentinelUsername, SentinelPassword: d.SentinelPassword,
		MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: d.Timeout, DialerRetries: 1, ReadTimeout: timeout, WriteTimeout: timeout,
		DisableIdentity:          true, // CLIENT SETINFO is younger than Redis 6.2
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect:                d.greet, Dialer: d.dial,
	}
	switch {
	case d.clustered():
		c := o.Cluster()
		// What goes where is in the keys. Asking the server would need the right to
		// COMMAND, and without it a try of every call.
		c.DisableRoutingPolicies = true
		// A master that died names no successor, and a minute is long.
		c.ClusterStateReloadInterval = time.Second
		client := redis.NewClusterClient(c)
		client.OnNewNode(func(node *redis.Client) { node.AddHook(d.calls); node.AddHook(discreet{&d}) })
		return client
	case d.Master != "":
		c := redis.NewFailoverClient(o.Failover())
		c.AddHook(viaSentinels{})
		c.AddHook(d.calls)
		c.AddHook(discreet{&d})
		return c
	}
	c := redis.NewClient(o.Simple())
	c.AddHook(d.calls)
	c.AddHook(discreet{&d})
	return c
}

// dial opens a connection. It is given a dialer of our own, so TLS is its, too.
func (d *Dial) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	open := d.Network
	if open == nil {
		open = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	conn, err := open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.calls != nil {
		conn = d.calls.conn(conn)
	}
	if d.TLS == nil {
		return conn, nil
	}
	// Less than a call has, so that the call's error says that it was this.
	shaking, cancel := context.WithTimeout(ctx, d.Timeout/2)
	defer cancel()
	secure := tls.Client(conn, d.tlsFor(address))
	if err := secure.HandshakeContext(shaking); err != nil {
		_ = conn.Close() // its error says less
		return nil, &handshakeError{address, err}
	}
	return secure, nil
}

// tlsFor is the configuration for one server.
func (d *Dial) tlsFor(address string) *tls.Config {
	if d.TLS.ServerName != "" {
		return d.TLS
	}
	c := d.TLS.Clone()
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

// viaSentinels marks what goes wrong on the way to the master. Else an answer of a
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
func (d *Dial) greet(ctx context.Context, c *redis.Conn) error {
	is, err := hello(ctx, c)
	if err != nil || is.mode == "sentinel" && d.Master != "" {
		return err // a Sentinel on the way: it has no standings to look after
	}
	if err := d.fits(is); err != nil {
		return err
	}
	// For CLIENT LIST alone. Whose user has no right to it does without: as an
	// option it would make every connection fail.
	if err := c.ClientSetName(ctx, "standings").Err(); err != nil && !forbidden(err) {
		return err
	}
	if d.Connected == nil {
		return nil
	}
	return d.Connected(ctx, c)
}

// server is what a server says of itself in answer to HELLO, which needs no right.
// The zero value is one that doesn't say.
type server struct{ mode string }

func hello(ctx context.Context, c *redis.Conn) (server, error) {
	command := redis.NewMapStringInterfaceCmd(ctx, "hello")
	err := c.Process(ctx, command)
	if err != nil && !forbidden(err) {
		return server{}, err
	}
	is := server{}
	is.mode, _ = command.Val()["mode"].(string) // none where a proxy answers, or a fake
	return is, nil
}

const notOfACluster = "isn't a cluster's node: for a single server give one address and leave redis.cluster false, " +
	"for Sentinels set redis.sentinel.master"

// fits holds what a server is against what it was dialled as.
func (d *Dial) fits(is server) error {
	switch {
	case is.mode == "sentinel":
		return misfit("is a Sentinel: name the master that it watches by redis.sentinel.master")
	case is.mode == "cluster" && !d.clustered():
		return misfit("is a node of a cluster: set redis.cluster: true, or give several nodes in redis.addresses")
	case is.mode == "standalone" && d.clustered():
		return misfit(notOfACluster)
	}
	return nil
}
