package kafkaconn

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// RetryTransient makes a call to Kafka, and repeats it while a broker answers with a transient error, for
// at most the client's timeout. Examples: the leaders of a new topic do not know it yet, and a cluster
// whose first group is used has no coordinator until a client requests it. RetryTransient returns any other
// error at once, also if a broker cannot be reached.
func RetryTransient(ctx context.Context, client *kafka.Client, call func() error) error {
	var last error
	err := retry.Policy{First: 50 * time.Millisecond, Longest: time.Second, Patience: client.Timeout}.Do(ctx, transient, func() error {
		last = call()
		return last
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return last // the broker's error is more precise than the deadline's
	}
	return err
}

func transient(err error) bool {
	_, answered := errors.AsType[kafka.Error](err)
	return answered && Classify(err) == ledger.Retry
}
