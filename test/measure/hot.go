package main

// Events that have a member or a partition in common.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// publish publishes n events, so many a second if that isn't 0, in common what m.hot says.
func (m *measurement) publish(ctx context.Context, n, rate int) error {
	switch m.hot {
	case "":
		return m.produce(ctx, "--count", strconv.Itoa(n), "--rate", strconv.Itoa(rate))
	case "member":
		one := *m
		one.members = 1
		return one.produce(ctx, "--count", strconv.Itoa(n), "--rate", strconv.Itoa(rate))
	case "partition":
		return m.intoOne(ctx, n, rate)
	}
	return fmt.Errorf("-hot %s: want member or partition", m.hot)
}

// intoOne publishes to the first partition alone, members as uneven as those of produce.
func (m *measurement) intoOne(ctx context.Context, n, rate int) error {
	client, err := kgo.NewClient(append(m.client.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()))...)
	if err != nil {
		return fmt.Errorf("connect to Kafka: %w", err)
	}
	defer client.Close()
	members := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.1, 1, uint64(m.members-1))
	var failed error // the client calls back from one goroutine, and Flush waits for it
	for i, began := 0, time.Now(); i < n; i++ {
		if rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		at := time.Now().Add(-rand.N(10 * time.Minute)).UTC().Format("2006-01-02T15:04:05.000Z")
		value := fmt.Appendf(nil, `{"event_id":"%016x","board":"global","user_id":"player-%07d","points":%d,"occurred_at":%q}`,
			rand.Uint64(), members.Uint64(), 1+rand.IntN(100), at)
		client.Produce(ctx, &kgo.Record{Topic: m.topic, Value: value, Partition: 0}, func(_ *kgo.Record, err error) {
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if failed != nil {
		return fmt.Errorf("publish: %w", failed)
	}
	return nil
}
