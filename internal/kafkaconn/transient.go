package kafkaconn

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// RetryTransient makes a call to Kafka, and makes it again while a broker answers with an error
// that passes by itself, for as long as a call may take: leaders of a topic that was created a
// moment ago don't know it yet, and a cluster of which nobody has used a group has no coordinator
// until one is looked for. Any other error is returned at once; a broker that can't be reached
// isn't waited for.
func RetryTransient(ctx context.Context, client *kafka.Client, call func() error) error {
	var last error
	err := retry.Policy{First: 50 * time.Millisecond, Longest: time.Second, Patience: client.Timeout}.Do(ctx, transient, func() error {
		last = call()
		return last
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return last // it says more than that the caller's time is over
	}
	return err
}

func transient(err error) bool {
	_, answered := errors.AsType[kafka.Error](err)
	return answered && Classify(err) == ledger.Retry
}
