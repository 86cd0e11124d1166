package ingest

// Records of magic 0, which have no times: a fake broker that hands its log out as
// one from before Kafka 0.11 would have kept it.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// withoutTimes has the broker answer fetches of partition 0 with messages of magic 0
// that hold values, from offset 0 on.
func (w *world) withoutTimes(values [][]byte) {
	w.cluster.ControlKey(int16(kmsg.Fetch), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		req := k.(*kmsg.FetchRequest)
		if len(req.Topics) != 1 || req.Topics[0].Topic != topic {
			return nil, nil, false
		}
		from := req.Topics[0].Partitions[0].FetchOffset
		if from >= int64(len(values)) {
			return nil, nil, false // the fake waits, as brokers do
		}
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset, p.LogStartOffset = int64(len(values)), int64(len(values)), 0
		for i, v := range values[from:] {
			m := kmsg.MessageV0{Offset: from + int64(i), Value: v}
			m.MessageSize = int32(len(m.AppendTo(nil)) - 12)
			b := m.AppendTo(nil)
			binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
			p.RecordBatches = append(p.RecordBatches, b...)
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.Partitions = topic, []kmsg.FetchResponseTopicPartition{p}
		resp.Topics = append(resp.Topics, t)
		return resp, nil, true
	})
}

// The broker is asked for the first offset of a time, and would leave out half of
// the log: as long as its first record has no time, that isn't believed.
func TestALogWithoutTimesIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]Start{
		"window": {From: FromWindow},
		"a time": {From: FromTime, Time: time.Now().Add(-time.Hour)},
	} {
		for timed, first := range map[bool]int64{false: 0, true: 5} {
			w := newWorld(t, 1)
			var values [][]byte
			for i, e := range some("a", 10, 5) {
				if int64(i) >= first {
					w.counts(e)
				}
				value, err := json.Marshal(e)
				require.NoError(t, err)
				values = append(values, value)
				at := time.Now()
				if i < 5 {
					at = at.AddDate(-5, 0, 0)
				}
				r := &kgo.Record{Value: value, Timestamp: at}
				require.NoError(t, w.client.ProduceSync(context.Background(), r).FirstErr())
			}
			if !timed {
				w.withoutTimes(values)
			}
			w.worker(0, func(c *Config) { c.Start = start })
			w.reaches(0)
			w.standings.do(func() {
				require.Regexp(t, "^"+strconv.FormatInt(first, 10)+" ", w.standings.origins[w.config.Topics[0]+"/0"], name)
			})
		}
	}
}
