package ingest

import (
	"context"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// balancer deals partitions out round robin, and remembers how many it dealt.
// Only the group's leader is asked to deal: so it alone can see that a topic has
// grown since.
type balancer struct {
	kafka.RoundRobinGroupBalancer
	mu    sync.Mutex
	dealt map[string]int // by topic; nil on members that aren't the leader
}

// AssignGroups deals.
func (b *balancer) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	dealt := map[string]int{}
	for _, p := range partitions {
		dealt[p.Topic]++
	}
	b.mu.Lock()
	b.dealt = dealt
	b.mu.Unlock()
	return b.RoundRobinGroupBalancer.AssignGroups(members, partitions)
}

// take is what was dealt for this generation, nil on others than the leader.
func (b *balancer) take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.dealt
	b.dealt = nil
	return d
}

// growthEvery is how often the leader compares what it dealt with what there is.
const growthEvery = time.Second

// watchGrowth ends the generation, by returning, where the leader sees that a
// topic has other partitions than it dealt. Everybody else just stays.
func (c *Consumer) watchGrowth(ctx context.Context) {
	dealt := c.balancer.take()
	asked := map[string]int{} // partitions that a dead-letter topic was to get
	for dealt != nil && sleep(ctx, growthEvery) == nil {
		found, err := c.kafka.metadata(ctx, c.Topics...)
		if err != nil {
			continue // the workers say what is the matter with Kafka
		}
		for _, topic := range c.Topics {
			// Also where the group dealt the new partitions before anybody saw them:
			// another member joined in that moment.
			if n := found[topic]; asked[topic] != n && c.fewerDeadLetters(ctx, topic, n) {
				asked[topic] = n // once: what keeps it from working is said
				c.growDeadLetters(ctx, topic, n)
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

// fewerDeadLetters reports whether a topic's dead-letter topic has fewer partitions
// than it has. One that isn't there or can't be seen hasn't.
func (c *Consumer) fewerDeadLetters(ctx context.Context, topic string, partitions int) bool {
	name := DeadLetterTopic(topic)
	found, err := c.kafka.metadata(ctx, name)
	return err == nil && found[name] > 0 && found[name] < partitions
}
