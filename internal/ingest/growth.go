package ingest

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/retry"
)

// growthEvery is how often the leader compares what it dealt with what there is.
const growthEvery = time.Second

// watchGrowth ends the generation, by returning, where the leader sees that a
// topic has other partitions than it dealt. Everybody else just stays.
func (c *Consumer) watchGrowth(ctx context.Context) {
	dealt := c.balancer.take()
	asked := map[string]int{} // partitions that a dead-letter topic was to get
	for dealt != nil && retry.Sleep(ctx, growthEvery) == nil {
		found, err := kafkaconn.Partitions(ctx, c.kafka, c.Topics...)
		if err != nil {
			continue // the workers say what is the matter with Kafka
		}
		for _, topic := range c.Topics {
			// Also where the group dealt the new partitions before anybody saw them:
			// another member joined in that moment.
			if n := found[topic]; asked[topic] != n && c.deadLetters.Fewer(ctx, topic, n) {
				asked[topic] = n // once: what keeps it from working is said
				c.deadLetters.Grow(ctx, topic, n)
			}
		}
		for _, topic := range c.Topics {
			// A topic that is gone has no partitions to deal: keep what there was.
			if n := found[topic]; n > 0 && n != dealt[topic] {
				c.Log.Info("partitions were added: sharing them out", zap.String("topic", topic), zap.Int("from", dealt[topic]), zap.Int("to", n))
				return
			}
		}
	}
	<-ctx.Done()
}
