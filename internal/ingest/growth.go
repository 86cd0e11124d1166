package ingest

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/retry"
)

// growthEvery is the interval at which the leader compares the assigned partitions with those that exist.
const growthEvery = time.Second

// watchGrowth runs until the generation ends. On the leader it returns early, which ends the generation, if a
// topic has another number of partitions than the leader assigned.
func (c *Consumer) watchGrowth(ctx context.Context) {
	dealt := c.balancer.take()
	asked := map[string]int{} // number of partitions to which a dead-letter topic was to grow
	for dealt != nil && retry.Sleep(ctx, growthEvery) == nil {
		found, err := kafkaconn.Partitions(ctx, c.kafka, c.Topics...)
		if err != nil {
			continue // the workers report problems with Kafka
		}
		for _, topic := range c.Topics {
			// This check is also needed if the group assigned the new partitions before the leader saw them,
			// because another member joined at that moment.
			if n := found[topic]; asked[topic] != n && c.deadLetters.Fewer(ctx, topic, n) {
				asked[topic] = n // only once: Grow logs why it fails
				c.deadLetters.Grow(ctx, topic, n)
			}
		}
		for _, topic := range c.Topics {
			// A deleted topic has no partitions to assign: keep the previous assignment.
			if n := found[topic]; n > 0 && n != dealt[topic] {
				c.Log.Info("partitions were added: sharing them out", zap.String("topic", topic), zap.Int("from", dealt[topic]), zap.Int("to", n))
				return
			}
		}
	}
	<-ctx.Done()
}
