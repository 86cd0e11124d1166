package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFinalTopicNeedsSealsAndHoldsNothingElse(t *testing.T) {
	for _, c := range []struct{ file, says string }{
		{"seal: true\nkafka: {final_topic: points.final}", ""},
		{"kafka: {final_topic: points.final}", "since only final windows are published"},
		{"seal: true\nkafka: {final_topic: points}", "must not be one of kafka.topics"},
		{"seal: true\nkafka: {final_topic: points.dlq}", "must not be the dead-letter topic of points"},
		{"seal: true\nkafka: {topics: [points, points.final.done], final_topic: points.final}", "points.final.done, which must not be one of kafka.topics"},
		{"seal: true\nkafka: {final_topic: points.bans, bans_topic: points.bans}", "must not be kafka.bans_topic"},
		{"seal: true\nkafka: {final_topic: points.final, bans_topic: points.final.done}", "points.final.done, which must not be kafka.bans_topic"},
		{"seal: true\nkafka: {final_topic: 'a b'}", "is not a topic name"},
		{"seal: true\nkafka: {final_topic: " + strings.Repeat("a", 245) + "}", "has 245 characters, at most 244 are possible"},
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
