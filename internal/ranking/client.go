package ranking

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Dial says how to reach Redis.
type Dial struct {
	Addresses []string
	Username  string
	Password  string
	DB        int
	Timeout   time.Duration
	// Connected is called with every new connection before it is used, from any
	// goroutine; an error ends the connection and is the call's. nil is none.
	Connected func(context.Context, *redis.Conn) error
}

// NewClient makes a client that doesn't try again by itself, since every retry
// goes through the ledger, and that ends a call with its context.
func NewClient(d Dial) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: d.Addresses, Username: d.Username, Password: d.Password, DB: d.DB,
		MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: d.Timeout, DialerRetries: 1, ReadTimeout: d.Timeout, WriteTimeout: d.Timeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			// For CLIENT LIST alone. Whose user has no right to it does without: as an
			// option it would make every connection fail.
			if err := c.ClientSetName(ctx, "standings").Err(); err != nil && !forbidden(err) {
				return err
			}
			if d.Connected == nil {
				return nil
			}
			return d.Connected(ctx, c)
		},
		Dialer: (&net.Dialer{Timeout: d.Timeout, KeepAlive: 30 * time.Second}).DialContext,
	})
}
