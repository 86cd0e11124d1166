package ingest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/retry"
)

// growthEvery is the interval at which the leader compares the assigned partitions with those that exist.
const growthEvery = time.Second

// watchGrowth runs until the generation ends. On the leader it returns early, which ends the generation, if a
// topic has another number of partitions than the leader assigned.
func (c *Consumer) watchGrowth(ctx context.Context) {
	dealt := c.balancer.Take()
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

// endEvery is how often the ends of logs that aren't being read are queried: a partition that is halted or
// waits for the standings also falls behind.
const endEvery = 5 * time.Second

// watchEnds queries those ends until the generation ends.
func (c *Consumer) watchEnds(ctx context.Context, workers []*worker) {
	tick := time.NewTicker(endEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		unread := map[string][]int{}
		for _, w := range workers {
			if w.lag.Stale(endEvery + 2*c.FetchWait) {
				unread[w.Topic] = append(unread[w.Topic], w.Number)
			}
		}
		for _, topic := range slices.Sorted(maps.Keys(unread)) {
			ends, err := kafkaconn.Ends(ctx, c.kafka, kafka.ReadCommitted, topic, unread[topic]...)
			if err != nil {
				c.Log.Debug("couldn't ask where logs end that aren't read", zap.Error(err))
				continue
			}
			for _, w := range workers {
				if end, ok := ends[w.Number]; ok && w.Topic == topic {
					w.lag.Ends(end, -1)
				}
			}
		}
	}
}

// identityEvery is how often the log of a running worker is compared with Kafka's. A cached answer is shared
// for less than that.
const identityEvery = 5 * time.Second

// flow lets watchIdentities end a worker's flow. Its topic is the id of the topic to which the flow's position
// belongs.
type flow struct {
	topic string
	end   context.CancelCauseFunc
}

// watchIdentities ends the flows whose topic was created again: their workers locate again, and halt. It runs
// until the generation ends.
func (c *Consumer) watchIdentities(ctx context.Context, workers []*worker) {
	tick := time.NewTicker(identityEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, w := range workers {
			log, err := c.identities.Of(ctx, w.Partition)
			if err != nil {
				c.Log.Debug("could not ask for the ids of topics", zap.Error(err))
				break
			}
			if f := w.flows.Load(); f != nil && f.topic != "" && log.Topic != "" && log.Topic != f.topic {
				f.end(locate.ErrAgain)
			}
		}
	}
}
