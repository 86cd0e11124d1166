package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// After a topic is created, the leaders of its partitions do not know it at first, and brokers return
// errors for a while. These errors are transient, and no command gives up on them.
func TestWhatABrokerAnswersForAWhileIsAskedAgain(t *testing.T) {
	redis, prefix := testenv.Redis(t).Addr(), testenv.Prefix(t)
	for _, test := range []struct {
		args []string
		key  kmsg.Key
		err  error
	}{
		{[]string{"produce", "--count", "10"}, kmsg.Metadata, kerr.LeaderNotAvailable},
		{[]string{"produce", "--count", "10"}, kmsg.InitProducerID, kerr.CoordinatorLoadInProgress},
		{[]string{"produce", "--count", "10"}, kmsg.Produce, kerr.NotLeaderForPartition},
		{[]string{"produce", "--count", "10"}, kmsg.DescribeConfigs, kerr.UnknownTopicOrPartition},
		{[]string{"dead-letters", "list"}, kmsg.Metadata, kerr.LeaderNotAvailable},
		{[]string{"dead-letters", "list"}, kmsg.ListOffsets, kerr.NotLeaderForPartition},
		{[]string{"dead-letters", "list", "--since", "2026-11-01T00:00:00Z"}, kmsg.ListOffsets, kerr.NotLeaderForPartition},
		{[]string{"dead-letters", "list"}, kmsg.Fetch, kerr.NotLeaderForPartition},
		{[]string{"status"}, kmsg.Metadata, kerr.LeaderNotAvailable},
		{[]string{"status"}, kmsg.ListOffsets, kerr.NotLeaderForPartition},
		{[]string{"status"}, kmsg.OffsetFetch, kerr.CoordinatorLoadInProgress},
		{[]string{"check"}, kmsg.ListOffsets, kerr.NotLeaderForPartition},
		{[]string{"check"}, kmsg.DescribeConfigs, kerr.UnknownTopicOrPartition},
		{[]string{"check"}, kmsg.OffsetFetch, kerr.NotCoordinator},
		{[]string{"check"}, kmsg.DescribeGroups, kerr.NotCoordinator},
		{[]string{"rebuild", "--dry-run"}, kmsg.Metadata, kerr.LeaderNotAvailable},
	} {
		t.Run(strings.Join(test.args, " ")+" "+test.key.Name(), func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
			environ = append(environ, "STANDINGS_REDIS_ADDRESSES="+redis, "STANDINGS_REDIS_PREFIX="+prefix)
			if code, _, stderr := execute(t, environ, "produce", "--count", "300"); code != 0 {
				t.Fatal(stderr)
			}
			if code, _, stderr := execute(t, environ, "produce", "--topic", "points.dlq", "--count", "30"); code != 0 {
				t.Fatal(stderr)
			}
			answer, _ := errors.AsType[*kerr.Error](test.err)
			for range 3 {
				c.Fault(kfake.Fault{Keys: []kmsg.Key{test.key}, Err: answer, Count: 1})
			}
			_, stdout, stderr := execute(t, environ, test.args...)
			if text := stdout + stderr; strings.Contains(text, ", error ") || strings.Contains(text, "doesn't exist") {
				t.Errorf("%s", text)
			}
		})
	}
}
