package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
)

// transactionRights looks up whether a producer of a transactional id may write. No request reports
// that: KIP-430 has no such ids, and ACLs are an administrator's to read. So a producer id is
// requested as nobody can have it, for transactions that may last longer than any broker allows: a
// broker judges the right first, then that time, and only then would the producers of this
// id be fenced. Nothing is changed by it.
func transactionRights(ctx context.Context, client *kafka.Client, id string) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	m, err := client.Transport.RoundTrip(ctx, client.Addr, &initproducerid.Request{
		TransactionalID: id, TransactionTimeoutMs: math.MaxInt32, ProducerID: -1, ProducerEpoch: -1,
	})
	if err == nil {
		err = codeOf(m.(*initproducerid.Response).ErrorCode)
	}
	switch {
	case err == nil, errors.Is(err, kafka.InvalidTransactionTimeout):
		return everything, nil
	case errors.Is(err, kafka.TransactionalIDAuthorizationFailed):
		return noRight, nil
	}
	return noRight, fmt.Errorf("ask what this user may do with the transactional id %s: %w", id, err)
}

func codeOf(code int16) error {
	if code == 0 {
		return nil
	}
	return kafka.Error(code)
}
