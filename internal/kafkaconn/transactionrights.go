package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
)

// transactionRights returns whether a producer with a transactional id may write. No request reports that:
// KIP-430 does not cover transactional ids, and only administrators may read ACLs. So it requests a
// producer id with a transaction timeout that exceeds every broker's limit. The broker checks the right
// first and the timeout second; it would fence the other producers of this id only after both. So nothing
// changes.
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
