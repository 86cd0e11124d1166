package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// tenRecords returns a log of ten batches, and the stretch from the second record to the ninth.
func tenRecords(t *testing.T) (*kfake.Cluster, *kadm.Client, *scan.Stretch) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "points"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("points"))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	for n := range 10 {
		require.NoError(t, client.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(n))).FirstErr())
	}
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	reader := &kafka.Client{Addr: kafka.TCP(c.ListenAddrs()...), Transport: transport}
	return c, kadm.NewClient(client), &scan.Stretch{Client: reader, Topic: "points", From: 1, End: 9, MaxBytes: 1}
}

// valuesOf returns the values of all records, and the number of offsets passed.
func valuesOf(ctx context.Context, s *scan.Stretch) (values string, passed int64, err error) {
	s.Passed = func(n int64) { passed += n }
	err = s.Each(ctx, func(r *recordbatch.Record) error { values += string(r.Value); return nil })
	return values, passed, err
}

func TestAStretchIsReadWhateverPasses(t *testing.T) {
	for name, trouble := range map[string]func(*kfake.Cluster){
		"nothing": func(*kfake.Cluster) {},
		"a leader that moves": func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition, Count: 3})
		},
		"lost connections": func(c *kfake.Cluster) {
			var fetches atomic.Int64
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				cut := fetches.Add(1)%3 == 2
				return nil, errors.New("cut by the test"), cut
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, s := tenRecords(t)
			trouble(c)
			if values, passed, err := valuesOf(t.Context(), s); values != "12345678" || passed != 8 || err != nil {
				t.Errorf("%s, %d passed: %v", values, passed, err)
			}
		})
	}
}

func TestWhereTheLogIsCutItGoesOnAtWhatIsLeft(t *testing.T) {
	_, admin, s := tenRecords(t)
	if _, err := admin.DeleteRecords(t.Context(), kadm.Offsets{"points": {0: {Topic: "points", At: 4}}}); err != nil {
		t.Fatal(err)
	}
	if values, passed, err := valuesOf(t.Context(), s); values != "45678" || passed != 8 || err != nil || s.Resumed != 4 {
		t.Errorf("%s, %d passed: %v", values, passed, err)
	}
}

func TestAnOldMessageFormatIsReportedAndNotReadAgain(t *testing.T) {
	message, err := hex.DecodeString("000000000000000000000018757dd16e01000000015d3ef79800ffffffff000000027632")
	if err != nil {
		t.Fatal(err)
	}
	c, _, s := tenRecords(t)
	var fetches atomic.Int64
	c.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		fetches.Add(1)
		asked := q.(*kmsg.FetchRequest).Topics[0]
		r := q.ResponseKind().(*kmsg.FetchResponse)
		topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		topic.Topic = asked.Topic
		partition.HighWatermark, partition.LastStableOffset, partition.RecordBatches = 10, 10, message
		topic.Partitions = append(topic.Partitions, partition)
		r.Topics = append(r.Topics, topic)
		return r, nil, true
	})
	if _, _, err := valuesOf(t.Context(), s); err == nil || !strings.Contains(err.Error(), "points/0: a message of format 1, from before Kafka 0.11") || fetches.Load() != 1 {
		t.Errorf("after %d fetches: %v", fetches.Load(), err)
	}
}

func TestItEndsWithWhoeverTakesTheRecords(t *testing.T) {
	_, _, s := tenRecords(t)
	mine := errors.New("the disk is full")
	if err := s.Each(t.Context(), func(*recordbatch.Record) error { return mine }); err != mine { //nolint:errorlint // as it is
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	taken := 0
	err := s.Each(ctx, func(*recordbatch.Record) error { taken++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || taken > 1 {
		t.Errorf("%d taken after the end: %v", taken, err)
	}
}
