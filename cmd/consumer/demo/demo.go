// Package demo implements the command demo: Kafka, Redis, players and the consumer in one process, and
// boards that move. It leaves nothing behind.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app/run"
	"github.com/standings/standings/internal/app/serve"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/units"
)

type flags struct {
	rate     float64
	members  int
	duration time.Duration
	shards   int
	plain    bool
}

// Command returns the demo command for a program.
func Command(p *cli.Program) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo with embedded Kafka and Redis",
		Long: `Starts Kafka inside the process, Redis (redis-server or valkey-server of the PATH, otherwise
a stand-in inside the process), sample players and the consumer, and shows the boards
here and in a browser. Ctrl-C stops everything; nothing is kept. Try other commands on it
from another terminal.

Events go back 45 days by occurred_at. The demo uses the default configuration, with its own
addresses, a matching lateness, an archive in SQLite for final windows, and the board arena with a rule of
its own: the furthest stage with the fewest revives. It reads no file and no environment variables.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if p.ConfigPath != "" {
				return cli.Usagef("demo has its own configuration: remove --config")
			}
			if !(f.rate >= 0 && f.rate <= 1e6) {
				return cli.Usagef("--rate must be 0 to 1000000")
			}
			if f.members < 1 || f.members > 1_000_000 {
				return cli.Usagef("--members must be 1 to 1000000")
			}
			if f.shards < 1 || f.shards > ledger.MaxShards {
				return cli.Usagef("--shards must be 1 to %d", ledger.MaxShards)
			}
			return start(c.Context(), p, f)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.Float64Var(&f.rate, "rate", 0, "events per second (default: 2000, or 1000 with the stand-in for Redis)")
	flags.IntVar(&f.members, "members", 500, "number of players")
	flags.Var(cli.Duration(&f.duration), "duration", "stop after this `time`, such as 30s")
	flags.IntVar(&f.shards, "shards", 1, "number of `shards`, as redis.shards")
	flags.BoolVar(&f.plain, "plain", false, "write lines instead of a screen")
	return c
}

const (
	defaultRate = 2000
	standInRate = 1000

	partitions = 6
	spread     = 45 * units.Day
	// keptLog is the log that a partition keeps, in bytes: far more than the consumer is ever behind, and
	// small enough for a laptop.
	keptLog = 48 * units.MiB
	// memoryLimit is the garbage collector's limit. The consumer sets one for itself alone, but here the
	// broker's log is in the same process.
	memoryLimit = 2 * units.GiB
	// drainTime is the time that the consumer has after an interrupt to count what was published.
	drainTime = 1500 * time.Millisecond
)

// servers holds the demo's servers, and the directory with the file that lists their addresses.
type servers struct {
	dir   string // for the log, the configuration and the environment
	kafka *embedded.Kafka
	redis *embedded.Redis
	cfg   *config.Config
	page  string // URL of the boards in a browser
}

func start(ctx context.Context, p *cli.Program, f *flags) error {
	stage, err := openServers(ctx, f.shards)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // interrupted before there was anything to see
		}
		return err
	}
	if f.rate == 0 {
		f.rate = defaultRate
		if stage.redis.Name == embedded.Miniredis {
			f.rate = standInRate
		}
	}
	err = play(ctx, p, f, stage)
	stage.close()
	return stage.strike(err)
}

// strike removes the demo's files. After a failure it keeps the log, and the error ends with the log's last
// lines. It still removes the file with the servers' addresses: otherwise the next terminal could take it
// for that of a running demo.
func (s *servers) strike(err error) error {
	if _, missing := os.Stat(s.logPath()); err == nil || missing != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	err = fmt.Errorf("%w\nthe log, %s, ends with: %s", err, s.logPath(), child.Tail(s.logPath(), 10))
	left, unread := os.ReadDir(s.dir)
	all := []error{err, unread}
	for _, file := range left {
		if path := filepath.Join(s.dir, file.Name()); path != s.logPath() {
			all = append(all, os.Remove(path))
		}
	}
	return errors.Join(all...)
}

// openServers starts the servers and configures the number of shards.
func openServers(ctx context.Context, shards int) (s *servers, err error) {
	s = &servers{}
	defer func() {
		if err != nil {
			s.close()
			_ = os.RemoveAll(s.dir)
		}
	}()
	if s.dir, err = os.MkdirTemp("", "standings-demo-"); err != nil {
		return s, fmt.Errorf("create a directory for the log: %w", err)
	}
	if err = s.configure(); err != nil {
		return s, err
	}
	cfg := s.cfg
	topic := cfg.Kafka.Topics[0]
	if s.kafka, err = embedded.StartKafka(ctx, embedded.KafkaOptions{Topics: map[string]int{topic: partitions}, Keep: keptLog}); err != nil {
		return s, err
	}
	if s.redis, err = embedded.StartRedis(ctx); err != nil {
		return s, err
	}
	cfg.Kafka.Brokers = s.kafka.Addresses()
	cfg.Redis.Addresses = []string{s.redis.Address}
	cfg.Redis.Shards = int64(shards)
	// The stand-in does not report its policy; it never evicts.
	cfg.Redis.AssumeNoeviction = s.redis.Name == embedded.Miniredis
	cfg.Lateness = spread + units.Day
	cfg.Seal, cfg.Archive.URL = true, "sqlite:"+filepath.Join(s.dir, "archive.db")
	cfg.LogFormat = "json"
	cfg.ShutdownTimeout = 2 * time.Second
	cfg.Listen = config.Off // a consumer that runs next to the demo may need the port
	return s, s.writeEnvironment()
}

// The demo's board with a rule of its own: the furthest stage in a run, with the fewest revives.
const (
	arena       = "arena"
	arenaPeriod = "weekly"
	arenaEvery  = 20 // one event in arenaEvery is a run
	mostStage   = 999
	mostRevives = 99

	// boardsFile is the demo's configuration, without the settings that depend on its servers.
	boardsFile = `boards:
  ` + arena + `:                  # the furthest stage, then the fewest revives, then the earliest
    score: best
    fields:
      - {name: stage, max: 999}
      - {name: revives, max: 99, order: fewest}
    periods: [` + arenaPeriod + `]
  "*": {}                 # every other board sums points
`
)

func (s *servers) configPath() string { return filepath.Join(s.dir, "standings.yaml") }

// configure writes the demo's configuration file and loads it, as other commands do.
func (s *servers) configure() error {
	if err := os.WriteFile(s.configPath(), []byte(boardsFile), 0o600); err != nil {
		return fmt.Errorf("write the demo's configuration: %w", err)
	}
	l, err := config.Load(s.configPath(), nil)
	if err != nil {
		return err
	}
	s.cfg = l.Config
	return nil
}

// environment returns the variables that give other commands the demo's configuration.
func (s *servers) environment() []string {
	return []string{
		config.FileVariable + "=" + s.configPath(),
		config.Prefix + "KAFKA_BROKERS=" + strings.Join(s.cfg.Kafka.Brokers, ","),
		config.Prefix + "REDIS_ADDRESSES=" + strings.Join(s.cfg.Redis.Addresses, ","),
		config.Prefix + "REDIS_SHARDS=" + strconv.FormatInt(s.cfg.Redis.Shards, 10),
		config.Prefix + "REDIS_ASSUME_NOEVICTION=" + strconv.FormatBool(s.cfg.Redis.AssumeNoeviction),
		config.Prefix + "LATENESS=" + units.FormatDuration(s.cfg.Lateness),
		config.Prefix + "SEAL=true",
		config.Prefix + "ARCHIVE_URL=" + s.cfg.Archive.URL,
	}
}

func (s *servers) writeEnvironment() error {
	text := "export " + strings.Join(s.environment(), "\nexport ") + "\n"
	if err := os.WriteFile(s.environmentPath(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the addresses of the servers: %w", err)
	}
	return nil
}

func (s *servers) environmentPath() string { return filepath.Join(s.dir, "env") }
func (s *servers) logPath() string         { return filepath.Join(s.dir, "consumer.log") }

func (s *servers) close() {
	if s.redis != nil {
		s.redis.Close()
	}
	if s.kafka != nil {
		s.kafka.Close()
	}
}

// play runs players and consumer until the context or the duration ends, then lets the consumer finish, and
// returns once everything has ended.
func play(ctx context.Context, p *cli.Program, f *flags, stage *servers) (err error) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	logFile, err := os.Create(stage.logPath())
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	log, err := logging.New(stage.cfg, logFile, false)
	if err != nil {
		return err
	}
	game, err := newPlayers(f)
	if err != nil {
		return err
	}
	port, err := stage.openPage(ctx, log)
	if err != nil {
		return err
	}
	defer port.Close()
	playing, enough := context.WithCancel(ctx)
	defer enough()
	if f.duration > 0 {
		playing, enough = context.WithTimeout(ctx, f.duration)
		defer enough()
	}
	consuming, stop := context.WithCancel(context.WithoutCancel(ctx))
	consumed := make(chan error, 1)
	go func() {
		err := run.Consume(consuming, stage.cfg, log, game.stats, game.consumer.Store)
		enough() // for whatever reason it ended: without a consumer there is nothing to show
		stop()
		consumed <- err
	}()
	played := make(chan error, 1)
	go func() {
		err := game.play(playing, stage.cfg)
		enough()
		played <- err
	}()

	shown := show(playing, p, f, stage, game) // returns when playing ends, or earlier if showing fails
	enough()
	err = errors.Join(shown, <-played)
	if err == nil {
		game.drain(ctx, consuming, drainTime)
	}
	stop()
	if err = errors.Join(err, <-consumed); err == nil {
		fmt.Fprint(p.Stdout, game.summary())
	}
	return err
}

// pageListen is the address of the boards in a browser, unless its port is taken.
const pageListen = "127.0.0.1:8090"

// openPage serves the API and the page, on a free port if the usual one is taken. The demo's consumer does
// not serve them.
func (s *servers) openPage(ctx context.Context, log *zap.Logger) (*serve.Port, error) {
	own := *s.cfg
	own.API.Listen = pageListen
	port, err := serve.Open(ctx, &own, nil, log)
	if errors.Is(err, syscall.EADDRINUSE) {
		own.API.Listen = "127.0.0.1:0"
		port, err = serve.Open(ctx, &own, nil, log)
	}
	if err != nil {
		return nil, err
	}
	s.page = "http://" + port.Addr().String() + "/"
	return port, nil
}
