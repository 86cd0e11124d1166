package topic

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// fixture is a window that can become final, and a topic.
type fixture struct {
	*finaltest.World

	t     testing.TB
	kafka *testenv.KafkaServer
	topic string
}

func newFixture(t testing.TB, k *testenv.KafkaServer, of ledger.Shards, rule string, partitions int) *fixture {
	t.Helper()
	f := &fixture{World: finaltest.New(t, of, rule), t: t, kafka: k}
	f.topic = k.Topic(t, partitions, map[string]string{"cleanup.policy": "compact"})
	k.CreateTopic(t, f.topic+PublishedSuffix, 1, map[string]string{"cleanup.policy": "compact"})
	return f
}

func (f *fixture) producer(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(f.kafka.Addresses()...), kgo.DisableClientMetrics(), kgo.RetryTimeout(5 * time.Second), kgo.ProduceRequestTimeout(5 * time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond), kgo.UnknownTopicRetries(-1),
	}, options...)...)
}

func (f *fixture) client() *kafka.Client {
	f.t.Helper()
	transport := kafkaconn.Settings{Timeout: 20 * time.Second}.Transport(time.Second, f.topic, f.topic+PublishedSuffix)
	f.t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(f.kafka.Addresses()...), Transport: kafkaconn.Robust(transport), Timeout: 20 * time.Second}
}

func (f *fixture) config() Config {
	return Config{
		Boards: f.Boards, Kafka: f.client(), Producer: f.producer, Topic: f.topic,
		TransactionalID: f.topic + ".final", Source: SourceOf("a group", "lb"),
		Lateness: finaltest.Always, Zone: finaltest.Zone, Fields: f.Fields, Log: zaptest.NewLogger(f.t),
	}
}

func (f *fixture) publisher() *Publisher { return New(f.config()) }

// archived returns an archive, and a function that archives final windows.
func (f *fixture) archived() (*store.Store, func(token int64)) {
	f.t.Helper()
	s, err := store.Open(f.t.Context(), "sqlite:"+filepath.Join(f.t.TempDir(), "archive.db"))
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, s.Close()) })
	require.NoError(f.t, s.Migrate(f.t.Context()))
	c := f.config()
	a := archive.New(archive.Config{Boards: c.Boards, Store: s, Lateness: c.Lateness, Zone: c.Zone, Fields: c.Fields, Log: c.Log})
	return s, func(token int64) {
		require.NoError(f.t, a.Pass(f.t.Context(), store.Fence{Token: token, Owner: fmt.Sprint(token)}))
	}
}

// read returns all records that an independent consumer sees with an isolation level, in the order of each
// partition.
func (f *fixture) read(isolation kgo.IsolationLevel) (all []*kgo.Record) {
	f.t.Helper()
	c := f.kafka.Client(f.t)
	ctx, cancel := context.WithTimeout(f.t.Context(), 60*time.Second)
	defer cancel()
	admin := kadm.NewClient(c)
	list := admin.ListCommittedOffsets
	if isolation == kgo.ReadUncommitted() {
		list = admin.ListEndOffsets
	}
	ends, err := list(ctx, f.topic)
	require.NoError(f.t, err)
	require.NoError(f.t, ends.Error())
	from := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().At(0), o.Offset
		}
	})
	if len(left) == 0 {
		return nil
	}
	reader := f.kafka.Client(f.t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{f.topic: from}), kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords())
	for len(left) > 0 {
		fetches := reader.PollFetches(ctx)
		require.NoError(f.t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// count returns the number of these records.
func (f *fixture) count(isolation kgo.IsolationLevel) int { return len(f.read(isolation)) }

// value is the value of any record.
type value struct {
	Type       string          `json:"type"`
	Board      string          `json:"board"`
	Period     string          `json:"period"`
	Window     string          `json:"window"`
	Revision   int64           `json:"revision"`
	Rank       int64           `json:"rank"`
	Member     string          `json:"member"`
	Points     *int64          `json:"points"`
	FieldsText json.RawMessage `json:"fields"`
	ReachedAt  time.Time       `json:"reached_at"`
	Score      float64         `json:"score"`
	Start      time.Time       `json:"start"`
	End        time.Time       `json:"end"`
	TimeZone   string          `json:"time_zone"`
	TickMS     int64           `json:"tick_ms"`
	SealedAt   time.Time       `json:"sealed_at"`
	Members    int64           `json:"members"`
	Checksum   string          `json:"checksum"`
	Incomplete []string        `json:"incomplete"`
}

func parse(t testing.TB, r *kgo.Record) value {
	t.Helper()
	var v value
	require.NoError(t, json.Unmarshal(r.Value, &v), string(r.Value))
	return v
}

// window is a revision as a consumer reads it, checked as docs/final-topic.md requires.
type window struct {
	header, trailer *kgo.Record
	partition       int32
	rows            []store.Row
}

// windows groups records by window and revision. Every record must belong to one.
func (f *fixture) windows(records []*kgo.Record) map[string][]window {
	f.t.Helper()
	all := map[string][]window{}
	var open *window
	var sum store.Checksum
	for _, r := range records {
		v := parse(f.t, r)
		name := fmt.Sprintf("%s:%s:%s:%d", v.Board, v.Period, v.Window, v.Revision)
		switch v.Type {
		case "header":
			require.Nil(f.t, open)
			open, sum = &window{header: r, partition: r.Partition}, 0
			require.Equal(f.t, name+":header", string(r.Key))
		case "standing":
			require.NotNil(f.t, open)
			require.Equal(f.t, open.partition, r.Partition)
			require.Equal(f.t, fmt.Sprint(name, ":", v.Rank), string(r.Key))
			row := store.Row{Place: v.Rank, Rank: v.Rank, Member: v.Member, Score: v.Score, ReachedAt: v.ReachedAt.UnixMilli()}
			fields := 0
			if f.Rule == nil {
				row.Tuple = codec.Tuple{*v.Points}
				require.Empty(f.t, v.FieldsText)
			} else {
				require.Nil(f.t, v.Points)
				var values map[string]int64
				require.NoError(f.t, json.Unmarshal(v.FieldsText, &values))
				for i, field := range f.Rule.Fields.List() {
					row.Tuple[i] = values[field.Name]
					fields++
				}
				require.Len(f.t, values, fields)
			}
			sum.Add(&row, fields)
			open.rows = append(open.rows, row)
			require.EqualValues(f.t, len(open.rows), v.Rank)
		case "trailer":
			require.NotNil(f.t, open)
			require.Equal(f.t, open.partition, r.Partition)
			require.Equal(f.t, name+":trailer", string(r.Key))
			require.EqualValues(f.t, len(open.rows), v.Members)
			require.Equal(f.t, v.Members, parse(f.t, open.header).Members)
			require.Equal(f.t, sum.String(), v.Checksum)
			open.trailer = r
			all[name] = append(all[name], *open)
			open = nil
		default:
			f.t.Fatalf("a record of type %q", v.Type)
		}
	}
	require.Nil(f.t, open)
	return all
}

// published returns the window's revision, which must be published exactly once.
func (f *fixture) published(revision int64) window {
	f.t.Helper()
	all := f.times(revision, 1)
	require.Len(f.t, all, 1)
	return all[0]
}

// times returns the published copies of a revision, once there are n of them. It waits, since Kafka replies to a
// commit before its marker is in the log.
func (f *fixture) times(revision int64, n int) []window {
	f.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all := f.windows(f.read(kgo.ReadCommitted()))[fmt.Sprint(f.Listed(), ":", revision)]
		if len(all) >= n || time.Now().After(until) {
			return all
		}
	}
}
