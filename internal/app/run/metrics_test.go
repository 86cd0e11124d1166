package run

// All metrics, and the documents about them: docs/metrics.md, the alerts and the dashboard.

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
	v1 "github.com/standings/standings/internal/api/v1"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/test/testenv"
)

// everyMetric returns what /metrics has if there is something to report for every metric.
func everyMetric(t *testing.T) *prometheus.Registry {
	t.Helper()
	now := func() ingest.Snapshot {
		return ingest.Snapshot{
			Membership: group.Membership{Joined: true},
			Partitions: []ingest.PartitionSnapshot{{Topic: "points", Line: workers.Line{State: workers.StateRunning}, Lag: workers.Lag{Known: true}}},
		}
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	m := newMeasured(client)
	m.points.set(gauge(pointsUsed, 0.5, "weekly"))
	m.boards.set(gauge(windowsListed, 60), gauge(boardsListed, 5))
	m.memory.set(gauge(redisMemoryUsed, 1<<20, "localhost:6379"), gauge(redisMemoryMax, 1<<30, "localhost:6379"))
	m.due.set(gauge(windowsDue, 0))
	m.reach.set(gauge(logReach, 1))
	setArchived(m.archived, archive.Progress{})
	setPublished(m.published, topic.Progress{})
	m.ran("seal", nil)
	cfg, stats := config.Defaults(), new(counts.Stats)
	stats.Shard(0)
	all, err := app.NewBoards(cfg, client, "")
	if err != nil {
		t.Fatal(err)
	}
	m.reportMasters(all)
	m.reportBans(bans.NewFollower(nil, "bans", zap.NewNop()))
	return newRegistry(cfg, stats, now, func() []api.Reason { return nil }, m, v1.NewMetrics())
}

// families returns the program's own metrics, by name.
func families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	all, err := everyMetric(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "standings_") })
}

func TestTheMetricsAreAsPrometheusAsks(t *testing.T) {
	problems, err := testutil.GatherAndLint(everyMetric(t))
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(everyMetric(t), "go_goroutines", "process_resident_memory_bytes"); err != nil || n != 2 {
		t.Errorf("%d metrics of the process: %v", n, err)
	}
}

const (
	alertsPath    = "../../../deploy/alerts.yaml"
	dashboardPath = "../../../deploy/dashboard.json"
	metricsPath   = "../../../docs/metrics.md"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	named  = regexp.MustCompile(`\bstandings_[a-z_]+[a-z]`)
	series = regexp.MustCompile(`_(bucket|sum|count)$`)
	alert  = regexp.MustCompile(`(?m)^ +- alert: (\w+)`)
)

// The table in docs/metrics.md is generated from the program's metrics and the alerts that use them.
// UPDATE_DOCS=1 writes it.
func TestTheTableOfMetricsIsTheProgramsOwn(t *testing.T) {
	const begin, end = "<!-- what /metrics shows -->\n", "<!-- end -->\n"
	text := read(t, metricsPath)
	before, rest, ok1 := strings.Cut(text, begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines %q and %q", metricsPath, begin, end)
	}
	table := metricsTable(families(t), alertsByMetric(t))
	if shown == table {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Fatalf("the table in %s isn't what the program shows: run this test with UPDATE_DOCS=1", metricsPath)
	}
	if err := os.WriteFile(metricsPath, []byte(before+begin+table+end+after), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}

func metricsTable(all []*dto.MetricFamily, alerts map[string][]string) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning | alert |\n|---|---|---|---|---|\n")
	for _, f := range all {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		b.WriteString("|")
		for _, cell := range []string{"`" + f.GetName() + "`", strings.ToLower(f.GetType().String()), strings.Join(labels, " "), f.GetHelp(), strings.Join(alerts[f.GetName()], ", ")} {
			b.WriteString(strings.TrimRight(" "+cell, " ") + " |")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// alertsByMetric returns the names of the alerts whose rule uses a metric.
func alertsByMetric(t *testing.T) map[string][]string {
	t.Helper()
	text := read(t, alertsPath)
	all := map[string][]string{}
	at := alert.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name := text[m[2]:m[3]]
		rule, _, _ := strings.Cut(text[m[1]:end], "annotations:")
		for _, metric := range named.FindAllString(rule, -1) {
			if !slices.Contains(all[metric], name) {
				all[metric] = append(all[metric], name)
			}
		}
	}
	return all
}

func TestWhatIsWrittenOfMetricsNamesOnlyThoseThereAre(t *testing.T) {
	if !json.Valid([]byte(read(t, dashboardPath))) {
		t.Error("the dashboard isn't JSON")
	}
	known := map[string]bool{}
	for _, f := range families(t) {
		known[f.GetName()] = true
	}
	for _, path := range []string{alertsPath, "../../../deploy/alerts_test.yaml", dashboardPath, metricsPath, "../../../README.md"} {
		text := read(t, path)
		found := named.FindAllString(text, -1)
		for _, name := range found {
			if !known[name] && !known[series.ReplaceAllString(name, "")] {
				t.Errorf("%s names %s, which isn't shown", filepath.Base(path), name)
			}
		}
		if len(found) == 0 && path != "../../../README.md" {
			t.Errorf("%s names no metric: the test looks at nothing", filepath.Base(path))
		}
	}
}

// Every alert has a test of the rules.
func TestTheAlertsAreValidAndDoWhatTheirTestsSay(t *testing.T) {
	tests := read(t, "../../../deploy/alerts_test.yaml")
	for _, m := range alert.FindAllStringSubmatch(read(t, alertsPath), -1) {
		if !strings.Contains(tests, m[1]) {
			t.Errorf("no test of the rules names %s", m[1])
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		testenv.NotRun(t, "there is no promtool on the PATH (Debian has it in the package prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "../../../deploy"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestEveryReasonForNotBeingReadyIsExplained(t *testing.T) {
	text := read(t, metricsPath)
	reasons := append(health.HaltReasons(), workers.StateWaiting, notStarted, waitsKafka, waitsRedis, notJoined, notAnswered, stopping)
	for _, r := range reasons {
		if !strings.Contains(text, "`"+r+"`") {
			t.Errorf("%s doesn't say what %s is", filepath.Base(metricsPath), r)
		}
	}
}
