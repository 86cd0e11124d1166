package rebuild

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

func TestATopicThatIsNoLongerConfiguredIsReadAgainAsLongAsKafkaHasIt(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	other := place.Beside(t, 1)
	place.Start(t)
	place.Publish(t, harness.Earned(50, 2000, 200, 2)...)
	other.Publish(t, harness.Earned(51, 1000, 200, 1)...)
	place.AwaitCaughtUp(t, harness.Within)
	place.TerminateAll(t)
	was := place.Boards(t)
	place.Settings["kafka.topics"] = place.Topic

	if said := startRebuild(t, place, "--diff").swapped(); !said.Swapped || said.differ() != 0 || len(said.Partitions) != 3 {
		t.Errorf("the rebuild says %+v", said)
	}
	same(t, was, place.Boards(t))

	harness.Must(t, place.RedisClient().HSet(t.Context(), place.Key("ledger"), "no-such-topic/0", "5").Err())
	startRebuild(t, place).refused("Kafka has no topic no-such-topic, which isn't in kafka.topics any more", "HDEL")
}

func TestARebuildOfBoardsThatHaveNeverCountedIsRefused(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1})
	startRebuild(t, place).refused("nothing was counted here yet")
}
