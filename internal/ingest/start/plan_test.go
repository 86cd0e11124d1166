package start

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

func TestPlansAreToldFromWhatAReadingCommitsAndFromThoseByAnotherSetting(t *testing.T) {
	latest, later := Where{From: FromLatest}, Where{From: FromTime, Time: time.UnixMilli(5000)}
	origin := ledger.Origin{Offset: 16, Time: 9000, Log: ledger.Log{Topic: "id", Epoch: 3}}
	read := kafkaconn.Commit{Offset: 7, Metadata: "standings/2 0@5 5:1000"}
	for _, w := range []Where{latest, later, {From: FromWindow}, {From: FromEarliest}} {
		committed := map[int]kafkaconn.Commit{0: read, 1: {Offset: 16, Metadata: w.Plan(origin)}, 2: {Offset: 4, Metadata: "another program's"}, 3: {}}
		got, plans := w.Plans(committed)
		require.Equal(t, map[int]kafkaconn.Commit{0: read, 2: committed[2], 3: {}}, got)
		require.Equal(t, map[int]ledger.Origin{1: origin}, plans)
		for _, other := range []Where{latest, later, {From: FromTime, Time: time.UnixMilli(5001)}} {
			if other != w {
				got, plans = other.Plans(committed)
				require.Equal(t, map[int]kafkaconn.Commit{0: read, 2: committed[2], 3: {}}, got)
				require.Empty(t, plans)
			}
		}
	}
}

func TestAFirstStartThatIsRepeatedSkipsNothingOfItsPlan(t *testing.T) {
	terms := &Terms{MaxFuture: 300}
	now := ledger.Log{Topic: "id", Epoch: 4}
	for _, c := range []struct {
		name     string
		plan     ledger.Origin
		logStart int64
		want     int64
	}{
		{"the log has grown", ledger.Origin{Offset: 16, Time: 1301, Log: ledger.Log{Topic: "id", Epoch: 3}}, 0, 16},
		{"the brokers reported no id then", ledger.Origin{Offset: 16, Time: 1301}, 0, 16},
		{"the log is as it was", ledger.Origin{Offset: 18, Time: 1301}, 0, 18},
		{"the log is shorter", ledger.Origin{Offset: 19, Time: 1301}, 0, 18},
		{"the log has lost that", ledger.Origin{Offset: 16, Time: 1301}, 17, 18},
		{"another topic of the same name", ledger.Origin{Offset: 16, Time: 1301, Log: ledger.Log{Topic: "before"}}, 0, 18},
	} {
		p := ledger.Partition{Topic: "events", Number: 0}
		set := []ledger.StartPosition{{Partition: p, At: ledger.At(18), Origin: &ledger.Origin{Offset: 18, Time: 2000, Log: now}}}
		trails := []trail.Trail{marks(18, 1699)}
		terms.Follow(map[int]ledger.Origin{0: c.plan}, set, trails, []Beginning{{Log: kafkaconn.Log{Start: c.logStart, End: 18}}})
		require.Equal(t, ledger.At(c.want), set[0].At, c.name)
		require.Equal(t, c.want, set[0].Origin.Offset, c.name)
		if c.want == 16 {
			require.Equal(t, &c.plan, set[0].Origin, c.name)
			require.Equal(t, marks(16, 1000), trails[0], c.name)
		}
	}
}
