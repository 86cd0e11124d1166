package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFinalTopicNeedsSealsAndHoldsNothingElse(t *testing.T) {
	for _, c := range []struct{ file, says string }{
		{"seal: true\nkafka: {final_topic: points.final}", ""},
		{"kafka: {final_topic: points.final}", "no window would ever be final"},
		{"seal: true\nkafka: {final_topic: points}", "is one of kafka.topics"},
		{"seal: true\nkafka: {final_topic: points.dlq}", "is where the dead letters of points go"},
		{"seal: true\nkafka: {topics: [points, points.final.done], final_topic: points.final}", "points.final.done, which is one of kafka.topics"},
		{"seal: true\nkafka: {final_topic: points.bans, bans_topic: points.bans}", "is kafka.bans_topic"},
		{"seal: true\nkafka: {final_topic: points.final, bans_topic: points.final.done}", "points.final.done, which is kafka.bans_topic"},
		{"seal: true\nkafka: {final_topic: 'a b'}", "isn't a topic's name"},
		{"seal: true\nkafka: {final_topic: " + strings.Repeat("a", 245) + "}", "has 245 characters, and may have 244"},
	} {
		found := problems(t, c.file)
		if c.says == "" {
			require.Empty(t, found, c.file)
			continue
		}
		require.Len(t, found, 1, c.file)
		require.ErrorContains(t, found["kafka.final_topic"], c.says, c.file)
	}
}
