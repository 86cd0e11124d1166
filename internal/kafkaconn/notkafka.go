package kafkaconn

// Detection of an address that belongs to another service.

import (
	"context"
	"net"
	"regexp"
	"time"
)

// ofRedis matches Redis's answers to PING: +PONG, or an error such as -NOAUTH.
var ofRedis = regexp.MustCompile(`^(\+PONG|-[A-Z]+ )`)

// notKafka returns a refusal if a Redis listens on the port, else err. Redis waits for the end of what it
// takes for a command, so to a Kafka client it looks like a broker that hangs. A real broker that hangs
// takes the PING for a request that is too long.
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
	n, _ := c.Read(answer) // reads nothing if the write has failed
	if ofRedis.Match(answer[:n]) {
		return p.refusal(err, "answers as a Redis does: see kafka.brokers")
	}
	return err
}
