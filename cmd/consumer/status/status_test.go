package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// hour is a fixed time for reports.
var hour = time.Date(2100, 3, 10, 12, 0, 0, 0, time.UTC)

// reportOf builds a report from given states of Redis and Kafka.
func reportOf(t *testing.T, state *ledger.State, logs map[ledger.Partition]partition, environ ...string) *report {
	t.Helper()
	return settledReport(t, state, nil, logs, environ...)
}

func settledReport(t *testing.T, state *ledger.State, settled ranking.SettledBorders, logs map[ledger.Partition]partition, environ ...string) *report {
	t.Helper()
	l, err := config.Load("", environ)
	require.NoError(t, err)
	s := &report{Group: "standings", Prefix: "lb", Problems: []string{}, Held: state.Held}
	s.addPartitions(l.Config.Kafka.Topics, logs, state)
	s.Incomplete, err = incompleteWindows(l.Config, state, settled)
	require.NoError(t, err)
	return s
}

func textOf(t *testing.T, s *report) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, write(&out, s, false))
	return "\n" + out.String()
}

func TestStatusShowsWhatIsWrongWithEachPartitionBelowTheTable(t *testing.T) {
	log := func(start, end int64, committed *int64) partition {
		return partition{LogStart: &start, LogEnd: &end, Committed: committed}
	}
	const gone = "the events from offset 5 to 9 are gone"
	halt := workers.Line{Owner: "b:1", State: "halted", Reason: "gap", What: gone, Remedy: "restore them", At: hour}
	s := reportOf(t, &ledger.State{
		Now: hour.Add(3 * time.Second), Held: true,
		Ledger: map[string]string{"points/0": "480", "points/1": "120..480@0000000000008f3c", "points/2": "torn:5", "points/10": "5", "other/0": "7"},
		Workers: map[string]string{
			"points/0":  clitest.LineOf(workers.Line{Owner: "a:1", State: "running", At: hour}),
			"points/1":  clitest.LineOf(workers.Line{Owner: "a:1", State: "waiting", What: "no answer\x1b[2J", At: hour}),
			"points/2":  clitest.LineOf(halt),
			"points/3":  clitest.LineOf(workers.Line{Owner: "c:9", State: "running", At: hour.Add(-time.Second)}),
			"points/10": clitest.LineOf(halt),
			"points/4":  "{",
		},
	}, map[ledger.Partition]partition{
		{Topic: "points", Number: 0}: log(0, 500, new(int64(470))), {Topic: "points", Number: 1}: log(100, 480, new(int64(120))),
		{Topic: "points", Number: 2}: log(10, 12, nil), {Topic: "points", Number: 3}: log(0, 0, nil), {Topic: "points", Number: 10}: log(10, 12, nil),
	})
	s.Partitions[0].BehindMS, s.Partitions[1].BehindMS = new(int64(1234)), new(int64(3*3600_000+4*60_000))
	want := `
group standings, prefix lb: 6 partitions, 1 running, 1 waiting, 2 halted, 1 stale; lag 394 records, 3h4m behind; lag of 2 unknown

PARTITION  LOG START  LOG END        POSITION  COMMITTED  LAG  BEHIND  STATE    OWNER
points/0           0      500             480        470   20    1.2s  running  a:1
points/1         100      480  120..480@0000…        120  360    3h4m  waiting  a:1
points/2          10       12          torn:5          -    7       -  halted   b:1
points/3           0        0               -          -    -       -  stale    c:9
points/4           -        -               -          -    -       -  -        -
points/10         10       12               5          -    7       -  halted   b:1

points/1 waiting: no answer\x1b[2J
points/2, points/10 halted (gap): the events from offset 5 to 9 are gone
  to do: restore them
points/3 stale: the last report, 4.0s ago, was running; the process may have stopped, or cannot reach Redis
points/4 unknown: the worker's report is unreadable: unexpected end of JSON input

a rebuild holds the boards: no events are applied until the swap or the expiry of its hold
`
	if got := textOf(t, s); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}

func TestAPartitionThatRunsSlowedDownSaysSo(t *testing.T) {
	slowed := workers.Line{Owner: "a:1", State: "running", Reason: "throttled", What: "brokers ask it to wait", Remedy: "raise the quota", At: hour}
	s := reportOf(t, &ledger.State{Now: hour, Workers: map[string]string{"points/0": clitest.LineOf(slowed), "points/1": clitest.LineOf(slowed)}}, nil)
	got := textOf(t, s)
	for _, want := range []string{"2 partitions, 2 running", "points/0, points/1 running (throttled): brokers ask it to wait\n  to do: raise the quota\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwithout %q", got, want)
		}
	}
}

func TestStatusSaysWhatIsRefilledAndWhoElseCounts(t *testing.T) {
	line := func(group string, age time.Duration) string {
		return clitest.LineOf(workers.Line{Owner: "a:1", Group: group, State: "running", At: hour.Add(-age)})
	}
	s := reportOf(t, &ledger.State{
		Now:     hour,
		Ledger:  map[string]string{"points/0": "480", "points/1": "120..500@0000000000008f3c", "points/2": "torn:5", "points/3": "7", "points/4": "9"},
		Refills: map[string]int64{"points/0": 480, "points/1": 500, "points/2": 6, "points/9": 7},
		Workers: map[string]string{
			"points/0": line("standings", 0), "points/1": line("other\x1b", 0), "points/2": line("other\x1b", time.Second),
			"points/3": line("renamed", time.Minute), "points/4": line("", 0),
		},
	}, nil)
	if s.Partitions[0].RefillTo != nil || *s.Partitions[1].RefillTo != 500 {
		t.Errorf("%+v", s.Partitions)
	}
	got := textOf(t, s)
	for _, want := range []string{
		"\nanother group, other\\x1b, counts points/1, points/2 under this prefix\n  to do: unless this group has just been renamed, stop one",
		"\nrefilling after Redis was lost or the boards were rebuilt: 381 records of points/1, points/2 still to read; until then boards are partial\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwants %s", got, want)
		}
	}
	if strings.Contains(got, "group, renamed") {
		t.Errorf("a line of a group that is gone: %s", got)
	}
}

func TestStatusSaysHowMuchTimeTheRecordsCoverAmongWhichDuplicatesAreFound(t *testing.T) {
	line := func(records int64, since time.Duration) workers.Line {
		return workers.Line{State: "running", At: hour, RecordTime: hour.Add(-time.Minute), Duplicates: records, DuplicatesSince: hour.Add(-time.Minute - since)}
	}
	unknown := line(1000, 0)
	unknown.DuplicatesSince = time.Time{}
	const among = ": duplicates are found among the last "
	for want, lines := range map[string][]workers.Line{
		"": {line(0, time.Hour), {State: "running", At: hour}},
		"\npoints/0, points/1, points/2" + among + "1,000 records, which cover at least 2m0s\n":         {line(1000, 90*time.Minute), unknown, line(1000, 2*time.Minute)},
		"\npoints/0" + among + "1,000 records\npoints/1" + among + "1 record, which cover at least 0\n": {unknown, line(1, -time.Second)},
	} {
		workers := map[string]string{}
		for i, l := range lines {
			workers[fmt.Sprint("points/", i)] = clitest.LineOf(l)
		}
		s := reportOf(t, &ledger.State{Now: hour, Workers: workers}, nil)
		if got := textOf(t, s); !strings.HasSuffix(got, want) || want == "" && strings.Contains(got, "duplicates") {
			t.Errorf("%s\nwants %s", got, want)
		}
		for i, l := range lines {
			ms, known := s.Partitions[i].DuplicatesMS, l.Duplicates > 0 && !l.DuplicatesSince.IsZero()
			if (s.Partitions[i].Duplicates != nil) != (l.Duplicates > 0) || (ms != nil) != known || known && *ms != max(0, l.RecordTime.Sub(l.DuplicatesSince).Milliseconds()) {
				t.Errorf("%+v is reported as %+v", l, s.Partitions[i])
			}
		}
	}
}

func TestWindowsThatBeganBeforeAnOriginAreIncompleteAsLongAsTheyLive(t *testing.T) {
	at := func(text string) string {
		moment, err := time.Parse(time.DateOnly, text)
		require.NoError(t, err)
		return ledger.Origin{Offset: 9, Time: moment.UnixMilli()}.String()
	}
	s := reportOf(t, &ledger.State{Now: hour, Origins: map[string]string{
		"points/0": at("2100-02-10"), "points/1": at("2100-03-02"), "points/2": "0 0", "points/10": at("2100-03-02"),
	}}, nil, "STANDINGS_PERIODS_WEEKLY_RETENTION=35d", "STANDINGS_PERIODS_YEARLY_RETENTION=30d", "STANDINGS_PERIODS_MONTHLY_RETENTION=60d")
	want := `
group standings, prefix lb: no partitions

incomplete, as events may be missing from before the log began or the period was added, or from a gap in the log:
  weekly   2100-W07 to 2100-W09  points/1, points/10
  weekly   2100-W05 to 2100-W06  points/0, points/1, points/10
  monthly  2100-03               points/1, points/10
  monthly  2100-01 to 2100-02    points/0, points/1, points/10
  yearly   2100                  points/0, points/1, points/10
`
	if got := textOf(t, s); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
	if s := reportOf(t, &ledger.State{Now: hour, Origins: map[string]string{"points/0": "0 0"}}, nil); len(s.Incomplete) != 0 || s.Incomplete == nil {
		t.Errorf("from the beginning nothing is incomplete, but %+v", s.Incomplete)
	}
}

// asStatus parses a report as a program does.
func asStatus(t *testing.T, stdout string) report {
	t.Helper()
	var s report
	require.NoError(t, json.Unmarshal([]byte(stdout), &s), stdout)
	return s
}

func TestStatusAsksBothKafkaAndRedisAndEitherAlone(t *testing.T) {
	c, kafkaThere := clitest.FakeKafka(t, kfake.SeedTopics(2, "other"))
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("other"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer client.Close()
	before := time.Now().Add(-time.Hour)
	for i := range 5 { // one batch each
		r := &kgo.Record{Partition: 1, Value: []byte("{}"), Timestamp: before.Add(time.Duration(i) * time.Minute)}
		require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
	}
	offsets := make(kadm.Offsets)
	offsets.AddOffset("other", 1, 2, -1)
	require.NoError(t, kadm.NewClient(client).CommitAllOffsets(t.Context(), "standings", offsets))
	w := clitest.StandingsOf(t)
	_, err = w.Store.Begin(t.Context(), []ledger.StartPosition{
		{Partition: ledger.Partition{Topic: "other", Number: 0}, At: ledger.At(0), Origin: &ledger.Origin{}}, {Partition: ledger.Partition{Topic: "other", Number: 1}, At: ledger.At(3), Origin: &ledger.Origin{}},
	})
	require.NoError(t, err)
	reports := func(partition int, l workers.Line) {
		t.Helper()
		_, _, err := w.Store.Report(t.Context(), []ledger.Line{{Partition: ledger.Partition{Topic: "other", Number: partition}, Text: clitest.LineOf(l)}})
		require.NoError(t, err)
	}
	reports(1, workers.Line{Owner: "me:1", State: "running", At: time.Now()})
	closed := clitest.ClosedPort(t)
	status := func(want int, change ...string) (report, string) {
		t.Helper()
		environ := append(append([]string{"STANDINGS_KAFKA_TOPICS=other"}, w.Environ...), kafkaThere...)
		code, stdout, stderr := clitest.Execute(t, Command, append(environ, change...), "status", "--json")
		if code != want {
			t.Fatalf("code %d, want %d: %s%s", code, want, stdout, stderr)
		}
		return asStatus(t, stdout), stderr
	}
	shape := func(p partition) string {
		show := func(v any) string { text, _ := json.Marshal(v); return string(text) }
		return fmt.Sprintf("%s start %s end %s position %s committed %s lag %s state %s", p.name(),
			show(p.LogStart), show(p.LogEnd), show(p.Position), show(p.Committed), show(p.Lag), show(p.State))
	}

	s, _ := status(1) // no consumer processes other/0
	if len(s.Partitions) != 2 || len(s.Problems) != 0 {
		t.Fatalf("%+v", s)
	}
	if got := shape(s.Partitions[0]); got != `other/0 start 0 end 0 position "0" committed null lag 0 state null` || *s.Partitions[0].BehindMS != 0 {
		t.Error(got)
	}
	if got := shape(s.Partitions[1]); got != `other/1 start 0 end 5 position "3" committed 2 lag 2 state "running"` {
		t.Error(got)
	}
	behind := time.Duration(*s.Partitions[1].BehindMS) * time.Millisecond
	// A record's time is cut to milliseconds.
	if oldest := time.Since(before.Add(3*time.Minute)) + time.Millisecond; behind > oldest || behind < oldest-time.Minute/2 {
		t.Errorf("behind %v: the first record that doesn't count is %v old", behind, oldest)
	}
	if s.Schema == nil || !strings.Contains(*s.Schema, "the Kafka cluster at kafka.brokers is some-cluster in Redis, ") {
		t.Errorf("another cluster's standings: %v", s.Schema)
	}

	reports(0, workers.Line{State: workers.StateHalted, Reason: "gap", At: time.Now()})
	if _, stderr := status(1); stderr != "" {
		t.Errorf("the report has said it: %s", stderr)
	}
	w.Finds(t, "other/0", workers.Line{State: workers.StateHalted, Reason: "gap", At: time.Now().Add(-time.Hour)})
	status(1) // the report is an hour old
	for _, field := range []string{"other/0", "other/1"} {
		w.Finds(t, field, workers.Line{Owner: "me:1", State: workers.StateRunning, At: time.Now().Add(time.Hour)})
	}
	status(0)

	s, stderr := status(1, "STANDINGS_KAFKA_BROKERS="+closed)
	if got := shape(s.Partitions[1]); got != `other/1 start null end null position "3" committed null lag null state "running"` || s.Schema != nil {
		t.Error(got, s.Schema)
	}
	if !strings.Contains(stderr, "can't connect to Kafka at "+closed) || len(s.Problems) != 1 {
		t.Error(stderr, s.Problems)
	}

	s, stderr = status(1, "STANDINGS_REDIS_ADDRESSES="+closed)
	if got := shape(s.Partitions[1]); got != `other/1 start 0 end 5 position null committed 2 lag null state null` {
		t.Error(got)
	}
	if !strings.Contains(stderr, "can't connect to Redis at "+closed) || len(s.Problems) != 1 {
		t.Error(stderr, s.Problems)
	}

	s, stderr = status(1, "STANDINGS_REDIS_ADDRESSES="+closed, "STANDINGS_KAFKA_BROKERS="+closed)
	if len(s.Partitions) != 0 || len(s.Problems) != 2 || strings.Count(stderr, "\n") != 2 {
		t.Error(stderr, s)
	}
}

func TestATopicThatDoesNotExistIsAProblemOfItsOwn(t *testing.T) {
	_, environ := clitest.FakeKafka(t)
	environ = append(environ, "STANDINGS_KAFKA_TOPICS=nowhere,points", "STANDINGS_REDIS_ADDRESSES="+testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX="+testenv.Prefix(t))
	code, stdout, stderr := clitest.Execute(t, Command, environ, "status")
	if code != 1 || !strings.Contains(stdout, "points/3 ") || !strings.Contains(stderr, "topic nowhere does not exist") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

// The age of its reports is measured by Redis's clock, not by the worker's.
func TestAWorkerWhoseClockIsWrongIsNotTakenForGone(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	at := ledger.Partition{Topic: "points"}
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		l := workers.Line{Owner: "me:1", State: workers.StateRunning, Lag: new(int64), At: time.Now().Add(by)}
		_, _, err := w.Store.Report(t.Context(), []ledger.Line{{Partition: at, Text: clitest.LineOf(l)}})
		require.NoError(t, err)
		st, err := w.Store.State(t.Context())
		require.NoError(t, err)
		p := reportOf(t, &st, nil).Partitions[0]
		if p.Stale || p.staleFor < 0 || p.staleFor > time.Minute || p.ReportedAt == nil {
			t.Errorf("by %v: %+v, %v old", by, p, p.staleFor)
		} else if reported, err := time.Parse(time.RFC3339, *p.ReportedAt); err != nil || st.Now.Sub(reported) != p.staleFor {
			t.Errorf("by %v it was reported at %s: %v", by, *p.ReportedAt, err)
		}
	}
}

// Calendar windows have the bounds that the consumers have settled; this program's time zone data may be
// different.
func TestIncompleteWindowsEndWhereTheConsumersHaveSettledIt(t *testing.T) {
	berlin := "STANDINGS_TIME_ZONE=Europe/Berlin"
	l, err := config.Load("", []string{berlin})
	require.NoError(t, err)
	weekly, err := l.Config.Rule(l.Config.Kept()[0])
	require.NoError(t, err)
	w, _, err := weekly.At(hour.UnixMilli())
	require.NoError(t, err)
	start, end, _ := weekly.Borders(w.Name)
	settled := ranking.SettledBorders{start: w.Start + time.Hour.Milliseconds(), end: hour.UnixMilli()}
	origin := ledger.Origin{Offset: 9, Time: w.Start + time.Hour.Milliseconds()}.String()
	s := settledReport(t, &ledger.State{Now: hour, Origins: map[string]string{"points/0": origin}}, settled, nil, berlin, "STANDINGS_PERIODS_WEEKLY_RETENTION=1h")
	for _, one := range s.Incomplete {
		if one.Period == "weekly" {
			t.Errorf("%+v starts where the events do, and the one before it is over", one)
		}
	}
}

// One period was added to the list of one board, another to two, one of which stands for the boards that
// are not named.
func TestStatusShowsOnWhichBoardsThePeriodIsIncomplete(t *testing.T) {
	s := reportOf(t, &ledger.State{Now: hour, Ledger: map[string]string{"points/0": "5"}, Since: map[string]int64{
		"monthly": hour.UnixMilli(), "arena:monthly": hour.UnixMilli(), "arena:weekly": hour.UnixMilli(), "*:weekly": hour.UnixMilli(), "lap:weekly": 0,
	}}, nil, "STANDINGS_PERIODS_WEEKLY_RETENTION=1h", "STANDINGS_PERIODS_MONTHLY_RETENTION=1h")
	want := `
incomplete, as events may be missing from before the log began or the period was added, or from a gap in the log:
  monthly                2100-03   points/0
  weekly of board *      2100-W10  points/0
  weekly of board arena  2100-W10  points/0
`
	if got := textOf(t, s); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant%s", got, want)
	}
}
