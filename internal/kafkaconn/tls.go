package kafkaconn

// The effects of TLS errors, and of missing TLS.

import (
	"context"
	"errors"
	"net"

	"github.com/standings/standings/internal/tlsfault"
)

// notOpened explains why there is no connection.
func (p *prober) notOpened(ctx context.Context, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); p.TLS == nil || ok && op.Op == "dial" {
		return err
	}
	server := p.overTLS()
	if what := server.Explain(err); what != "" {
		return p.refusal(err, "%s", what)
	}
	// A server without TLS closes the connection, or sends another answer.
	if c, plain := p.open(ctx, nil); plain == nil {
		defer c.Close() //nolint:errcheck // nothing was written that matters
		if negotiate(ctx, c) == nil {
			return p.refusal(err, "%s", server.Plain())
		}
	}
	return p.notKafka(ctx, err)
}

// notTalking explains why a broker does not answer the first request.
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
