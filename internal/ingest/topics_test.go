package ingest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/topics"
)

func TestATopicThatDoesNotExistYetIsAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.config.Topics = []string{topic, "later"}
	w.send(0, some("a", 5, 5)...)
	w.transport.MetadataTopics = append(w.transport.MetadataTopics, "later", event.DeadLetterTopic("later"))
	_, stop := w.consumer(nil)
	eventually(t, "it says what it waits for", func() bool { return w.logged("waiting for Kafka") > 0 })
	joins := w.watch(keyJoin)
	time.Sleep(500 * time.Millisecond)
	require.Zero(t, joins.Load(), "the topics that exist would have nobody to read them")
	require.NoError(t, w.cluster.CreateTopic("later", 1, nil))
	w.reaches(0)
	require.NoError(t, stop())
}

func TestWaitingForATopicEndsWithTheSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.config.Topics = []string{"never"}
	_, stop := w.consumer(nil)
	eventually(t, "it waits", func() bool { return w.logged("waiting for Kafka") > 0 })
	joins := w.watch(keyJoin)
	require.NoError(t, stop())
	require.Zero(t, joins.Load())
}

func TestATopicThatCompactsIsRefused(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"compact", "compact,delete"} {
		w := newWorld(t, 1)
		require.NoError(t, w.cluster.CreateTopic("compacted", 1, map[string]string{"cleanup.policy": policy}))
		w.config.Topics, w.transport.MetadataTopics = []string{"compacted"}, []string{"compacted"}
		var compact *topics.CompactError
		require.ErrorAs(t, New(w.config).Run(t.Context()), &compact)
		require.Contains(t, compact.Error(), policy)
	}
}

func TestATopicThatForgetsTooEarlyIsWarnedOf(t *testing.T) {
	t.Parallel()
	for retention, forgets := range map[string][]any{"3600000": {"weekly", "monthly"}, "1209600000": {"monthly"}, "-1": nil, "99999999999": nil} {
		w := newWorld(t, 1)
		for i := range w.config.Rules.Periods {
			w.config.Rules.Periods[i].Lateness = (24 * time.Hour).Milliseconds()
		}
		require.NoError(t, w.cluster.CreateTopic("short", 3, map[string]string{"retention.ms": retention}))
		w.config.Topics = []string{"short"}
		w.transport.MetadataTopics = []string{"short", event.DeadLetterTopic("short")}
		c := New(w.config)
		require.NoError(t, c.awaitTopics(t.Context()))
		said := w.logs.FilterMessageSnippet("keeps events for less").All()
		if forgets == nil {
			require.Empty(t, said)
		} else {
			require.Len(t, said, 1)
			require.Equal(t, forgets, said[0].ContextMap()["periods"])
		}
		// The dead-letter topic is configured like its source.
		topics, err := w.admin().ListTopics(t.Context(), event.DeadLetterTopic("short"))
		require.NoError(t, err)
		require.Len(t, topics[event.DeadLetterTopic("short")].Partitions, 3)
		configs, err := w.admin().DescribeTopicConfigs(t.Context(), event.DeadLetterTopic("short"))
		require.NoError(t, err)
		found := ""
		for _, c := range configs[0].Configs {
			if c.Key == "retention.ms" {
				found = *c.Value
			}
		}
		require.Equal(t, retention, found)
	}
}
