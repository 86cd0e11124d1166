package ingest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
)

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
