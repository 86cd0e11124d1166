package kafkaconn

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Ask puts a question to Kafka, and again while a broker's answer is one that passes by
// itself, for as long as a call may take: leaders of a topic that was created a moment ago
// don't know it yet, and a cluster that nobody has used a group of has no coordinator until
// it is asked for one. Any other error is returned at once; a broker that can't be reached
// isn't waited for.
func Ask(ctx context.Context, client *kafka.Client, question func() error) error {
	var last error
	err := retry.Policy{First: 50 * time.Millisecond, Longest: time.Second, Patience: client.Timeout}.Do(ctx, answerPasses, func() error {
		last = question()
		return last
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return last // it says more than that the caller's time is over
	}
	return err
}

func answerPasses(err error) bool {
	_, answered := errors.AsType[kafka.Error](err)
	return answered && Classify(err) == ledger.Retry
}
