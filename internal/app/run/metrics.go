package run

// The metrics that the process reports beside those of ingestion: measured from time to time, or read at a scrape.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/redisconn"
)

var (
	windowsListed = prometheus.NewDesc("standings_windows",
		"Windows that Redis lists, of the shard with the most. Reported by the leader.", nil, nil)
	boardsListed = prometheus.NewDesc("standings_boards",
		"Boards that have a window, at most 30 s old. Reported by the leader.", nil, nil)
	pointsUsed = prometheus.NewDesc("standings_points_largest_ratio",
		"Largest absolute points of a standing, as a share of max_points, over all boards with the default rule and open windows. Reported by the leader, every 30 s if there are few boards.", []string{"period"}, nil)
	logReach = prometheus.NewDesc("standings_log_reach_seconds",
		"How far back every partition has all records. An older Redis backup cannot be restored without a gap. Absent if no record was ever deleted. Reported by the leader.", nil, nil)
	redisMemoryUsed = prometheus.NewDesc("standings_redis_memory_used_bytes",
		"The server's used_memory. Absent if the server does not report it.", []string{"server"}, nil)
	redisMemoryMax = prometheus.NewDesc("standings_redis_memory_max_bytes",
		"The server's maxmemory; 0 for no limit.", []string{"server"}, nil)
	shardInfo = prometheus.NewDesc("standings_shard_info",
		"1; the labels are a shard and its master (host:port), empty if unknown, as with Sentinels.", []string{"shard", "master"}, nil)
	bansInForce = prometheus.NewDesc("standings_bans", "Bans in force, by kind: banned or erased. Only with kafka.bans_topic.", []string{"kind"}, nil)
	bansUnread  = prometheus.NewDesc("standings_bans_topic_away", "1 if the bans topic cannot be read: known bans stay in force, new ones are not seen. Only with kafka.bans_topic.", nil, nil)
	bansBad     = prometheus.NewDesc("standings_bans_bad_records_total", "Invalid records of the bans topic, which are ignored. Only with kafka.bans_topic.", nil, nil)

	poolConnections = prometheus.NewDesc("standings_redis_connections", "Connections to Redis, by state.", []string{"state"}, nil)
	poolTimeouts    = prometheus.NewDesc("standings_redis_pool_timeouts_total", "Calls that got no Redis connection in time.", nil, nil)
)

// reported is a group of metrics. It is empty if nothing is known, or another replica reports them.
type reported struct {
	descs []*prometheus.Desc
	read  atomic.Pointer[func() []prometheus.Metric]
}

func newReported(descs ...*prometheus.Desc) *reported { return &reported{descs: descs} }

// from sets the function that returns the metrics at a scrape.
func (r *reported) from(read func() []prometheus.Metric) { r.read.Store(&read) }

func (r *reported) set(all ...prometheus.Metric) { r.from(func() []prometheus.Metric { return all }) }
func (r *reported) none()                        { r.set() }

// last returns the metrics.
func (r *reported) last() []prometheus.Metric {
	if read := r.read.Load(); read != nil {
		return (*read)()
	}
	return nil
}

// Describe sends the descriptions.
func (r *reported) Describe(to chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		to <- d
	}
}

// Collect sends the metrics.
func (r *reported) Collect(to chan<- prometheus.Metric) {
	for _, m := range r.last() {
		to <- m
	}
}

func gauge(d *prometheus.Desc, n float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
}

func counter(d *prometheus.Desc, n float64) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, n)
}

// measured has the metrics of this package.
type measured struct {
	points, boards, due, archived, published, reach *reported // by the leader
	memory, masters, bans, pool                     *reported

	leader  prometheus.Gauge
	failing *prometheus.GaugeVec
}

func newMeasured(client redis.UniversalClient) *measured {
	m := &measured{
		points: newReported(pointsUsed), boards: newReported(windowsListed, boardsListed), due: newReported(windowsDue),
		archived:  newReported(archiveWaiting, archiveOldest, archiveOverdue),
		published: newReported(finalWaiting, finalOldest, finalWindows, finalStandings), reach: newReported(logReach),
		memory: newReported(redisMemoryUsed, redisMemoryMax), masters: newReported(shardInfo),
		bans: newReported(bansInForce, bansUnread, bansBad), pool: newReported(poolConnections, poolTimeouts),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: "standings_leader", Help: "1 if this replica is the leader, which runs the jobs that one replica runs, else 0."}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "standings_job_failing",
			Help: "1 if the last run of a job failed, else 0; it is repeated. The leader reports it."}, []string{"name"}),
	}
	m.pool.from(func() []prometheus.Metric { // the pool answers from memory
		s := client.PoolStats()
		return []prometheus.Metric{
			gauge(poolConnections, float64(s.IdleConns), "idle"),
			gauge(poolConnections, float64(s.TotalConns-min(s.IdleConns, s.TotalConns)), "used"),
			counter(poolTimeouts, float64(s.Timeouts)),
		}
	})
	return m
}

func (m *measured) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.points, m.boards, m.due, m.archived, m.published, m.reach, m.memory, m.masters, m.bans, m.pool, m.leader, m.failing}
}

// leads is called when a term starts and after it has ended. A replica that is not the leader reports nothing
// about the jobs.
func (m *measured) leads(is bool) {
	if is {
		m.leader.Set(1)
		return
	}
	m.leader.Set(0)
	m.failing.Reset()
	for _, r := range []*reported{m.points, m.boards, m.due, m.archived, m.published, m.reach} {
		r.none()
	}
}

// ran is called after each run of a job.
func (m *measured) ran(job string, err error) {
	failing := 0.0
	if err != nil {
		failing = 1
	}
	m.failing.WithLabelValues(job).Set(failing)
}

// reportMasters reports the master of each shard. The client answers from memory.
func (m *measured) reportMasters(all *boards.Boards) {
	m.masters.from(func() (metrics []prometheus.Metric) {
		for i, shard := range all.Shards() {
			metrics = append(metrics, gauge(shardInfo, 1, strconv.Itoa(i), shard.Addr()))
		}
		return metrics
	})
}

// reportBans reports the bans that f has read; f may be nil.
func (m *measured) reportBans(f *bans.Follower) {
	if f == nil {
		return
	}
	m.bans.from(func() []prometheus.Metric {
		banned, erased := f.State().Count(time.Now())
		away := 0.0
		if f.Waits() != nil {
			away = 1
		}
		return []prometheus.Metric{
			gauge(bansInForce, float64(banned), "banned"), gauge(bansInForce, float64(erased), "erased"),
			gauge(bansUnread, away), counter(bansBad, float64(f.Bad())),
		}
	})
}

const (
	// notBegunEvery is how often a job runs before anything was written to Redis.
	notBegunEvery = time.Second
	// countEvery is how often windows are counted, with one short command, and then boards. countPause is the
	// pause between two pages of 500 windows.
	countEvery = 10 * time.Second
	countPause = 25 * time.Millisecond
	// rangeEvery is how often the boards are checked. rangePause is the pause between two pages of 500 windows,
	// so that this uses at most a hundredth of the commands that Redis can process.
	rangeEvery = 30 * time.Second
	rangePause = 250 * time.Millisecond
	reachEvery = 5 * time.Minute
	// memoryEvery is how often INFO memory is sent to every master. The call takes a tenth of a millisecond.
	memoryEvery = 10 * time.Second
)

// look returns a job that reports what it measures. If a run fails, the job calls none, so that no old value is
// reported. Before anything was written to Redis there is nothing to measure, which is not a failure.
func look(name string, every time.Duration, none func(), run func(context.Context) (next time.Duration, err error)) jobs.Job {
	return jobs.Job{Name: name, Every: every, Run: func(ctx context.Context) (time.Duration, error) {
		next, err := run(ctx)
		if err == nil {
			return next, nil
		}
		none()
		if schema, ok := errors.AsType[*ranking.SchemaError](err); ok && schema.Found == "" {
			return notBegunEvery, nil
		}
		return 0, err
	}}
}

// measure returns a job that sets r to what read returns.
func measure(name string, every time.Duration, r *reported, read func(context.Context) ([]prometheus.Metric, error)) jobs.Job {
	return look(name, every, r.none, func(ctx context.Context) (time.Duration, error) {
		all, err := read(ctx)
		if err == nil {
			r.set(all...)
		}
		return 0, err
	})
}

func countBoards(r *reported, all *boards.Boards) jobs.Job {
	return measure("count boards", countEvery, r, func(ctx context.Context) ([]prometheus.Metric, error) {
		windows, err := all.Windows(ctx)
		if err != nil {
			return nil, err
		}
		listed, before := gauge(windowsListed, float64(windows)), r.last()
		if len(before) == 2 { // counting boards takes a while
			r.set(listed, before[1])
		} else {
			r.set(listed)
		}
		n, err := all.Count(ctx, countPause)
		return []prometheus.Metric{listed, gauge(boardsListed, float64(n))}, err
	})
}

func measurePoints(r *reported, cfg *config.Config, all *boards.Boards) jobs.Job {
	latenesses := map[string]time.Duration{}
	for _, p := range cfg.Kept() {
		latenesses[string(p.Name)] = cfg.LatenessOf(p)
	}
	lateness := func(period string) time.Duration { return latenesses[period] }
	return measure("measure points", rangeEvery, r, func(ctx context.Context) (used []prometheus.Metric, err error) {
		largest, err := all.Largest(ctx, lateness, rangePause)
		for period, points := range largest {
			used = append(used, gauge(pointsUsed, float64(points)/float64(cfg.MaxPoints), period))
		}
		return used, err
	})
}

// measureReach measures how far back the log reaches.
func (p *process) measureReach(cfg *config.Config, all *boards.Boards, c *ingest.Consumer) jobs.Job {
	client := p.topicsClient(cfg)
	return measure("measure the log", reachEvery, p.ops.reach, func(ctx context.Context) ([]prometheus.Metric, error) {
		state, err := all.Shards()[0].State(ctx)
		if err != nil {
			return nil, err
		}
		topics, err := app.ReadTopics(ctx, cfg, client)
		if err != nil {
			return nil, err
		}
		r, err := app.Reach(ctx, c, topics, state.Clock)
		if err != nil || r.Since <= 0 {
			return nil, err
		}
		return []prometheus.Metric{gauge(logReach, max(0, state.Clock().Sub(time.UnixMilli(r.Since)).Seconds()))}, nil
	})
}

// measureMemory measures the memory of Redis. Every replica reports it, because all of them depend on it.
func measureMemory(r *reported, read func(context.Context) ([]redisconn.Memory, error)) jobs.Job {
	return measure("measure Redis's memory", memoryEvery, r, func(ctx context.Context) (metrics []prometheus.Metric, err error) {
		all, err := read(ctx)
		for _, one := range all {
			metrics = append(metrics, gauge(redisMemoryUsed, float64(one.Used), one.Server), gauge(redisMemoryMax, float64(one.Max), one.Server))
		}
		return metrics, err
	})
}

const (
	fewWindowsLeft = "windows" // the reason of the warning
	// windowsWarned is the share of max_windows, in percent, from which on there is a warning.
	windowsWarned = 80
)

// windowRoom is the number of listed windows, on the shard that lists the most, and the limit. The number is 0
// until it is known.
type windowRoom struct {
	most   int64
	listed atomic.Int64
}

// countWindows returns the job that counts the windows. Every replica runs it, because each warns on its own
// port.
func countWindows(r *windowRoom, all *boards.Boards) jobs.Job {
	return look("count windows", countEvery, func() { r.listed.Store(0) }, func(ctx context.Context) (time.Duration, error) {
		n, err := all.Windows(ctx)
		if err == nil {
			r.listed.Store(n)
		}
		return 0, err
	})
}

// warnings returns a warning when max_windows is almost reached.
func (r *windowRoom) warnings() []api.Reason {
	n := r.listed.Load()
	if n*100 < r.most*windowsWarned {
		return nil
	}
	what := fmt.Sprintf("%d windows are listed; max_windows is %d. From 90 %% on, events of boards without a window are refused", n, r.most)
	return []api.Reason{{Reason: fewWindowsLeft, What: what,
		Remedy: "set boards to the boards that events may name and drop the others (consumer drop --board), or raise max_windows"}}
}
