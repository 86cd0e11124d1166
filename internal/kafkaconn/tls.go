package kafkaconn

// What TLS, and the want of it, look like when they go wrong.

import (
	"context"
	"errors"
	"net"

	"github.com/standings/standings/internal/tlsfault"
)

// notOpened says why there is no connection.
func (p *prober) notOpened(ctx context.Context, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); p.TLS == nil || ok && op.Op == "dial" {
		return err
	}
	server := p.overTLS()
	if what := server.Explain(err); what != "" {
		return p.refusal(err, "%s", what)
	}
	// What isn't TLS hangs up on it, or answers something else.
	if c, plain := p.open(ctx, nil); plain == nil {
		defer c.Close() //nolint:errcheck // nothing was written that matters
		if negotiate(ctx, c) == nil {
			return p.refusal(err, "%s", server.Plain())
		}
	}
	return p.notKafka(ctx, err)
}

// notTalking says why a broker doesn't answer the first request.
func (p *prober) notTalking(ctx context.Context, err error) error {
	if p.TLS != nil {
		if what := p.overTLS().Explain(err); what != "" {
			return p.refusal(err, "%s", what)
		}
		return err
	}
	if what := tlsfault.Unwanted(ctx, "kafka", p.broker); what != "" {
		return p.refusal(err, "%s", what)
	}
	return p.notKafka(ctx, err)
}

func (p *prober) overTLS() tlsfault.Server {
	return tlsfault.Server{Section: "kafka", Addresses: "kafka.brokers", Host: p.host(), TLS: p.TLS, Asked: p.asked}
}
