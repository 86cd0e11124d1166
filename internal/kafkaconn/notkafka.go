package kafkaconn

// An address that is another service's.

import (
	"context"
	"net"
	"regexp"
	"time"
)

// ofRedis is how Redis answers a PING: +PONG, or an error such as -NOAUTH.
var ofRedis = regexp.MustCompile(`^(\+PONG|-[A-Z]+ )`)

// notKafka is a refusal if a Redis has the port, else err. A Redis waits for the end of
// what it takes for a command, so that to a client it looks like a broker that hangs. To
// such a broker the PING is a request that is too long.
func (p *prober) notKafka(ctx context.Context, err error) error {
	c, dialErr := (&net.Dialer{}).DialContext(ctx, "tcp", p.broker)
	if dialErr != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // nothing was written that matters
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_ = c.SetDeadline(time.Now().Add(firstAnswer))
	answer := make([]byte, 64)
	_, _ = c.Write([]byte("*1\r\n$4\r\nPING\r\n"))
	n, _ := c.Read(answer) // nothing, where the write has failed
	if ofRedis.Match(answer[:n]) {
		return p.refusal(err, "answers as a Redis does: see kafka.brokers")
	}
	return err
}
