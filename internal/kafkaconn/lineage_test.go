package kafkaconn

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/standings/standings/internal/ledger"
)

// lineages returns a fake broker, franz-go's client of it, and kafka-go's.
func lineages(t *testing.T, options ...kfake.Opt) (*kfake.Cluster, *kgo.Client, *kafka.Client) {
	t.Helper()
	broker, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(2, "points")}, options...)...)
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	theirs, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(theirs.Close)
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond, MetadataTopics: []string{"points"}}
	t.Cleanup(transport.CloseIdleConnections)
	return broker, theirs, &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 20 * time.Second}
}

func TestATopicHasTheIDThatKafkaReportsAndTheEpochsOfItsLeaders(t *testing.T) {
	t.Parallel()
	broker, theirs, client := lineages(t)
	require.NoError(t, broker.MoveTopicPartition("points", 1, 0))
	all, err := TopicLogs(t.Context(), client, "points", "nothing")
	require.NoError(t, err)
	details, err := kadm.NewClient(theirs).ListTopics(t.Context(), "points")
	require.NoError(t, err)
	theirID := details["points"].ID
	id := base64.RawURLEncoding.EncodeToString(theirID[:]) // as Kafka's tools print it
	require.Equal(t, map[string]map[int]ledger.Log{"points": {
		0: {Topic: id, Epoch: details["points"].Partitions[0].LeaderEpoch},
		1: {Topic: id, Epoch: details["points"].Partitions[0].LeaderEpoch + 1},
	}}, all)
}

func TestAnEpochEndsWhereTheNextOneBegins(t *testing.T) {
	t.Parallel()
	broker, theirs, client := lineages(t)
	end := func(epoch int32) int64 {
		t.Helper()
		at, err := EpochEnd(t.Context(), client, "points", 1, epoch)
		require.NoError(t, err)
		return at
	}
	send := func(n int) {
		for range n {
			require.NoError(t, theirs.ProduceSync(t.Context(), &kgo.Record{Topic: "points", Partition: 1, Value: []byte("v")}).FirstErr())
		}
	}
	first, err := TopicLogs(t.Context(), client, "points")
	require.NoError(t, err)
	epoch := first["points"][1].Epoch
	send(3)
	require.Equal(t, int64(3), end(epoch))
	require.NoError(t, broker.MoveTopicPartition("points", 1, 0))
	send(2)
	require.Equal(t, int64(3), end(epoch))
	require.Equal(t, int64(5), end(epoch+1))
	_, err = EpochEnd(t.Context(), client, "points", 7, 0)
	require.Error(t, err)
}

func TestAnOldBrokerReportsNeitherIDsNorEpochs(t *testing.T) {
	t.Parallel()
	_, _, client := lineages(t, kfake.MaxVersions(kversion.V2_1_0()))
	all, err := TopicLogs(t.Context(), client, "points")
	require.NoError(t, err)
	require.Empty(t, all)
	end, err := EpochEnd(t.Context(), client, "points", 0, 0)
	require.NoError(t, err)
	require.Equal(t, int64(-1), end)
}

func TestTaggedFieldsOfAResponseAreSkipped(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		want []byte
		ok   bool
	}{
		{[]byte{0, 7}, []byte{7}, true},
		{[]byte{2, 1, 1, 9, 5, 2, 8, 8, 7}, []byte{7}, true},
		{[]byte{}, nil, false},
		{[]byte{1}, nil, false},
		{[]byte{1, 0, 200, 1, 1}, nil, false},
		{[]byte{1, 0, 9, 1}, nil, false},
	} {
		got, err := skipTags(c.in)
		require.Equal(t, c.ok, err == nil, "%v", c.in)
		if c.ok {
			require.Equal(t, c.want, got)
		}
	}
}
