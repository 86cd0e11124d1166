// Command measure takes the figures of docs/performance.md and docs/scaling.md: the end-to-end performance of the
// built consumer, on a given Kafka and Redis.
//
//	go build -o bin/ ./cmd/consumer ./test/measure ./test/testenv/cmd/testenv
//	bin/testenv bin/measure -consumer bin/consumer backlog
//
// It prints sums over the whole run: seconds of elapsed time, of the consumer's processor time and of Redis's.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measurement is one run with its own topic and prefix, on shared servers.
type measurement struct {
	consumer string
	topic    string
	parts    int
	events   int
	members  int
	rate     int
	client   *kgo.Client
	admin    *kadm.Client
	redis    redis.UniversalClient
	masters  []*redis.Client // each master of redis
	prefix   string
	shards   int
	each     bool   // rate and events are per master
	producer string // the built consumer that publishes
	env      []string
}

func run() error {
	m := &measurement{topic: fmt.Sprintf("measure-%d", time.Now().UnixNano())}
	flag.StringVar(&m.consumer, "consumer", "bin/consumer", "the built consumer")
	flag.IntVar(&m.parts, "partitions", 6, "partitions of the topic")
	flag.IntVar(&m.events, "events", 5_000_000, "events of the backlog, or of the live load")
	flag.IntVar(&m.members, "members", 1_000_000, "members, skewed by Zipf 1.1")
	flag.IntVar(&m.rate, "rate", 20_000, "events a second of the live load")
	clients := flag.Int("clients", 1000, "clients of streams")
	boards := flag.Int("boards", 50_000, "boards of the events of boards")
	flag.BoolVar(&m.each, "each", false, "shards, live: -rate and -events are for each master")
	numbers := flag.String("shards", "1,2,4", "shards: the numbers to compare, each on as many masters, or shards:masters")
	load := flag.String("load", "backlog", "shards: backlog or live")
	rounds := flag.Int("rounds", 3, "shards, reads: how often each has its turn")
	against := flag.String("against", "", "shards: another build of the consumer, with one shard")
	requests := flag.Int("requests", 2000, "reads: requests of each operation and way in a round")
	flag.Parse()
	kafkaAt, redisAt := os.Getenv("STANDINGS_TEST_KAFKA"), os.Getenv("STANDINGS_TEST_REDIS")
	if kafkaAt == "" || redisAt == "" {
		return errors.New("run it under testenv, or set STANDINGS_TEST_KAFKA and STANDINGS_TEST_REDIS")
	}
	var err error
	if m.client, err = kgo.NewClient(kgo.SeedBrokers(kafkaAt), kgo.DefaultProduceTopic(m.topic)); err != nil {
		return fmt.Errorf("connect to Kafka: %w", err)
	}
	defer m.client.Close()
	m.admin = kadm.NewClient(m.client)
	single := redis.NewClient(&redis.Options{Addr: redisAt})
	defer single.Close() //nolint:errcheck // the process ends
	m.redis, m.masters, m.prefix, m.shards, m.producer = single, []*redis.Client{single}, m.topic, 1, m.consumer
	m.env = append(os.Environ(), "STANDINGS_KAFKA_BROKERS="+kafkaAt, "STANDINGS_REDIS_ADDRESSES="+redisAt,
		"STANDINGS_KAFKA_TOPICS="+m.topic, "STANDINGS_KAFKA_GROUP="+m.topic, "STANDINGS_REDIS_PREFIX="+m.topic, "STANDINGS_LOG_FORMAT=json")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	if err := m.createTopic(ctx); err != nil {
		return err
	}
	switch flag.Arg(0) {
	case "backlog":
		return m.backlog(ctx)
	case "live":
		return m.live(ctx)
	case "delay":
		return m.delay(ctx)
	case "rebuild":
		return m.rebuild(ctx)
	case "reshard":
		return m.reshard(ctx)
	case "boards":
		return m.boards(ctx, *boards)
	case "streams":
		return m.streams(ctx, *clients)
	case "reads":
		return m.readsInTurn(ctx, *requests, *rounds)
	case "shards":
		return m.shardsInTurn(ctx, *load, *numbers, *against, *rounds)
	}
	return fmt.Errorf("what to measure: backlog, live, delay, rebuild, reshard, boards, streams, reads or shards")
}

func (m *measurement) createTopic(ctx context.Context) error {
	if _, err := m.admin.CreateTopic(ctx, int32(m.parts), 1, nil, m.topic); err != nil {
		return fmt.Errorf("create %s: %w", m.topic, err)
	}
	return nil
}

// backlog publishes all events first, and then starts a consumer.
func (m *measurement) backlog(ctx context.Context) error {
	if err := m.produce(ctx, "--count", strconv.Itoa(m.events)); err != nil {
		return err
	}
	c, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.begun(ctx); err != nil { // the time to join the group is not measured
		return err
	}
	begun, before := time.Now(), c.usage()
	redisBefore, err := m.redisCPU(ctx)
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	return m.report(ctx, c, int64(m.events), time.Since(begun), before, redisBefore)
}

// live runs a consumer while events arrive at a steady rate.
func (m *measurement) live(ctx context.Context) error {
	if err := m.produce(ctx, "--count", "10000"); err != nil {
		return err
	}
	c, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	begun, before := time.Now(), c.usage()
	redisBefore, err := m.redisCPU(ctx)
	if err != nil {
		return err
	}
	if err := m.produce(ctx, "--count", strconv.Itoa(m.events), "--rate", strconv.Itoa(m.rate)); err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	return m.report(ctx, c, int64(m.events), time.Since(begun), before, redisBefore)
}

// delay publishes single events and waits until each is in Redis.
func (m *measurement) delay(ctx context.Context) error {
	c, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.produce(ctx, "--count", "1000"); err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	board := fmt.Sprintf("%s:{0}:global:yearly:%d", m.topic, time.Now().UTC().Year())
	var all []time.Duration
	for i := range 300 {
		member := fmt.Sprintf("late-%d", i)
		value := fmt.Appendf(nil, `{"user_id":%q,"points":5}`, member)
		if err := m.client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		acknowledged := time.Now()
		for {
			err := m.redis.ZScore(ctx, board, member).Err()
			if err == nil {
				break
			}
			if !errors.Is(err, redis.Nil) {
				return fmt.Errorf("read %s: %w", board, err)
			}
		}
		all = append(all, time.Since(acknowledged))
		time.Sleep(20 * time.Millisecond) // the pace of a low load
	}
	slices.Sort(all)
	fmt.Printf("record to standing, from the producer's acknowledgement, %d events: median %v, 99th percentile %v, worst %v\n",
		len(all), all[len(all)/2].Round(10*time.Microsecond), all[len(all)*99/100].Round(10*time.Microsecond), all[len(all)-1].Round(10*time.Microsecond))
	return c.stop()
}

func (m *measurement) produce(ctx context.Context, args ...string) error {
	args = append([]string{"produce", "--members", strconv.Itoa(m.members), "--spread", "10m"}, args...)
	cmd := exec.CommandContext(ctx, m.producer, args...)
	cmd.Env = m.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

type process struct {
	cmd *exec.Cmd
	log *os.File
}

func (m *measurement) start(ctx context.Context) (*process, error) {
	return m.command(ctx, "run", "STANDINGS_LISTEN=off")
}

// command starts a command of the consumer in the background.
func (m *measurement) command(ctx context.Context, name string, env ...string) (*process, error) {
	return started(ctx, m.consumer, []string{name}, append(m.env[:len(m.env):len(m.env)], env...))
}

// started starts a program in the background.
func started(ctx context.Context, program string, args, env []string) (*process, error) {
	log, err := os.CreateTemp("", "measure-*.log")
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stderr = env, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return &process{cmd, log}, nil
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the consumer: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the consumer, whose log is %s: %w", p.log.Name(), err)
	}
	return nil
}

// usage returns the processor time so far, in seconds.
func (p *process) usage() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0.0
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
		n, _ := strconv.ParseFloat(f, 64) // the kernel's format
		ticks += n
	}
	return ticks / 100
}

func (p *process) status(name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)) // an empty value is shown
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// redisCPU returns the processor time of all masters so far, in seconds.
func (m *measurement) redisCPU(ctx context.Context) (float64, error) {
	all, err := worked(ctx, m.masters)
	sum := 0.0
	for _, one := range all {
		sum += one.seconds
	}
	return sum, err
}

// ledger returns the key of a shard's ledger.
func (m *measurement) ledger(shard int) string {
	if m.shards == 1 {
		return m.prefix + ":{0}:ledger"
	}
	return fmt.Sprintf("%s:{%s}:%d:ledger", m.prefix, ranking.Tag(shard, ledger.Shards(m.shards)), m.shards)
}

// counted returns, summed over partitions, the offset before which every event counts in all shards, and the number
// of partitions that have a position in all shards.
func (m *measurement) counted(ctx context.Context) (sum int64, begun int, err error) {
	lowest, have := map[string]int64{}, map[string]int{}
	for shard := range m.shards {
		all, err := m.redis.HGetAll(ctx, m.ledger(shard)).Result()
		if err != nil {
			return 0, 0, fmt.Errorf("read the ledger: %w", err)
		}
		for field, position := range all {
			from, _, _ := strings.Cut(position, ".")
			n, err := strconv.ParseInt(from, 10, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("position %q: %w", position, err)
			}
			if have[field]++; have[field] == 1 || n < lowest[field] {
				lowest[field] = n
			}
		}
	}
	for field, n := range lowest {
		if have[field] == m.shards {
			sum += n
			begun++
		}
	}
	return sum, begun, nil
}

// begun waits until the ledger has every partition, which happens before the first read.
func (m *measurement) begun(ctx context.Context) error {
	return until(ctx, func() (bool, error) {
		_, n, err := m.counted(ctx)
		return n == m.parts, err
	})
}

func (m *measurement) caughtUp(ctx context.Context) error {
	ends, err := m.admin.ListEndOffsets(ctx, m.topic)
	if err != nil {
		return fmt.Errorf("list the ends of %s: %w", m.topic, err)
	}
	sum := int64(0)
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return until(ctx, func() (bool, error) {
		n, begun, err := m.counted(ctx)
		return n >= sum && begun == m.parts, err
	})
}

func until(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *measurement) report(ctx context.Context, c *process, events int64, took time.Duration, before, redisBefore float64) error {
	cpu := c.usage() - before
	redisAfter, err := m.redisCPU(ctx)
	if err != nil {
		return err
	}
	peak := c.status("VmHWM")
	if err := c.stop(); err != nil {
		return err
	}
	log, err := os.ReadFile(c.log.Name())
	if err != nil {
		return fmt.Errorf("read the consumer's log: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	seconds := took.Seconds()
	fmt.Printf("events                     %d in %.1f s: %.0f a second\n", events, seconds, float64(events)/seconds)
	fmt.Printf("consumer's processor time  %.1f s: %.2f µs an event, %.0f events a second and core\n", cpu, cpu*1e6/float64(events), float64(events)/cpu)
	fmt.Printf("Redis's processor time     %.1f s: %.0f%% of the wall, %.0f events a second of it\n", redisAfter-redisBefore, 100*(redisAfter-redisBefore)/seconds, float64(events)/(redisAfter-redisBefore))
	fmt.Printf("largest resident memory    %s\n", peak)
	fmt.Printf("the consumer's last line   %s\n", lines[len(lines)-1])
	return nil
}
