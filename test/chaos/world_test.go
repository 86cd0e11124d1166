package chaos

// This file holds the world of a mode: its Kafka, Redis, networks, consumers and producers.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

const (
	consumers       = 3
	partitions      = 3
	mostPartitions  = 8
	sessionTimeout  = 3 * time.Second
	recoveredWithin = 3 * time.Minute
	starting        = 10 * time.Second // time to start a world
)

// quick holds settings with which losses are detected soon.
var quick = map[string]string{
	"kafka.session_timeout": sessionTimeout.String(), "kafka.timeout": "3s",
	"redis.timeout": "1s", "fold_memory": "44MiB",
}

// world is the environment of one mode.
type world struct {
	t         *testing.T
	mode      string
	place     *harness.Place
	kafka     *testenv.KafkaServer
	toKafka   *network
	store     *store
	archive   string // path of the SQLite file
	producers *producers
	slots     []*slot
	began     time.Time

	// disturbed means that something is wrong, or that no event counts yet. A calm fault disturbs nothing.
	disturbed atomic.Bool
	// single means that the round has only one fault.
	single atomic.Bool
	// rebuildTook is the duration of the last completed rebuild, ms.
	rebuildTook atomic.Int64

	// orders holds the last order to ban or unban, by <board>:<member>. Faults about bans never overlap, so
	// only one goroutine uses it at a time.
	orders map[string]order

	mu         sync.Mutex
	partitions int
	ended      []string // consumers that ended by themselves, and how
}

// slot runs one consumer at a time; when it ends, another one follows.
type slot struct {
	number   int
	mu       sync.Mutex
	consumer *harness.Consumer
	held     bool // reserved by a fault
}

// newWorld starts servers, consumers and producers.
func newWorld(t *testing.T, mode string, seed uint64) *world {
	t.Helper()
	w := &world{t: t, mode: mode, partitions: partitions, began: time.Now(), orders: map[string]order{}}
	w.rebuildTook.Store(300) // for a log that has just started
	w.disturbed.Store(true)
	w.archive = filepath.Join(t.TempDir(), "archive.db")
	w.startKafka(t)
	harness.Binary(t) // slow preparations come before the seasons start
	w.store = newStore(t, mode, seed)
	w.place = harness.New(t, harness.Options{
		Kafka: w.kafka, RedisClient: w.store.look, Partitions: partitions, Forgetful: true,
		Settings: with(quick, seasonal(w.archive), w.store.settings, map[string]string{"kafka.brokers": w.toKafka.address}),
	})
	w.place.Settings["kafka.bans_topic"] = w.place.Topic + ".bans"
	w.banFirst(t)
	for number := range consumers {
		w.slots = append(w.slots, &slot{number: number, consumer: w.place.Start(t)})
	}
	w.watch(t)
	w.producers = startProducers(t, w.place, seed, partitions)
	return w
}

// seasonal returns settings with boards with several rules, duplicates, and a season that ends in the
// middle of the faults. Events before its start are early on boards without other periods. Windows become
// final and are archived.
func seasonal(archive string) map[string]string {
	now, lasts := time.Now(), *duration/time.Duration(strings.Count(*modes, ",")+1)
	settings := harness.Ruled(now.Add(-30*time.Minute), now.Add(starting+lasts/2))
	settings["event.duplicates"] = strconv.Itoa(duplicates)
	settings["boards"] = withSeasons(settings["boards"])
	return with(settings, finals(archive, lasts))
}

// startKafka starts a Kafka whose listener is behind a network.
func (w *world) startKafka(t *testing.T) {
	t.Helper()
	listens, address := freeAddress(t), freeAddress(t)
	w.kafka = testenv.LocalKafka(t, map[string]string{
		"listeners": "CHAOS://" + listens, "advertised.listeners": "CHAOS://" + address,
		"listener.security.protocol.map": "CHAOS:PLAINTEXT",
	})
	w.toKafka = newNetwork(t, "kafka", address, listens)
}

// watch starts another consumer when one has ended by itself, as a supervisor does.
func (w *world) watch(t *testing.T) {
	t.Helper()
	done, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
			for _, s := range w.slots {
				w.restart(s)
			}
		}
	}()
}

func (w *world) restart(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held || s.consumer.Running() {
		return
	}
	w.mu.Lock()
	w.ended = append(w.ended, fmt.Sprintf("consumer %d: %s", s.consumer.Number, s.consumer.Log.Tail(2)))
	w.mu.Unlock()
	s.consumer = w.place.Start(w.t)
}

// take reserves a free consumer for a fault, if possible one with partitions. nil: all are reserved.
func (w *world) take(r *rand.Rand) *slot {
	for _, busy := range []bool{true, false} {
		for _, n := range r.Perm(len(w.slots)) {
			s := w.slots[n]
			s.mu.Lock()
			if !s.held && s.consumer.Running() && (!busy || s.has() > 0) {
				s.held = true
				s.mu.Unlock()
				return s
			}
			s.mu.Unlock()
		}
	}
	return nil
}

// takeAll reserves all free consumers for a fault.
func (w *world) takeAll(r *rand.Rand) []*slot {
	var all []*slot
	for s := w.take(r); s != nil; s = w.take(r) {
		all = append(all, s)
	}
	return all
}

// sweeping publishes a burst, and waits until a batch is partly applied. It gives up soon, because a fault
// need not hit a sweep.
func (w *world) sweeping(ctx context.Context) {
	w.producers.burst()
	for deadline := time.Now().Add(4 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if w.store.sweep(ctx, w.place) != "" {
			return
		}
	}
}

// giveBack releases a slot, with a new consumer if the old one has ended.
func (w *world) giveBack(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.consumer.Running() {
		s.consumer = w.place.Start(w.t)
	}
	s.held = false
}

// has returns the number of partitions in a consumer's last assignment.
func (s *slot) has() int {
	_, partitions := generation(s.consumer)
	return partitions
}

// generation returns the last generation in a consumer's log.
func generation(c *harness.Consumer) (id, partitions int) {
	for _, line := range c.Log.Lines() {
		if line.Message == "generation began" {
			n, _ := line.Fields["generation"].(float64)
			m, _ := line.Fields["partitions"].(float64)
			id, partitions = int(n), int(m)
		}
	}
	return id, partitions
}

// latest returns the group's last generation in any consumer's log.
func (w *world) latest() int {
	last := 0
	for _, s := range w.slots {
		s.mu.Lock()
		c := s.consumer
		s.mu.Unlock()
		id, _ := generation(c)
		last = max(last, id)
	}
	return last
}

// ends returns the current ends of the log. Kafka may still be starting.
func (w *world) ends(ctx context.Context) (map[int]int64, error) {
	deadline := time.Now().Add(recoveredWithin)
	for {
		ends, err := w.place.TryEnds(ctx)
		if err == nil || time.Now().After(deadline) {
			return ends, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// recovered waits until everything counts that was in the log when it was called, and returns how long that
// took.
func (w *world) recovered() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), recoveredWithin)
	defer cancel()
	begun := time.Now()
	ends, err := w.ends(ctx)
	if err != nil {
		return 0, err
	}
	for {
		short := w.short(ctx, ends)
		if short == "" {
			return time.Since(begun), nil
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("not recovered after %v: %s", recoveredWithin, short)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// short names a partition whose ledger is behind these ends.
func (w *world) short(ctx context.Context, ends map[int]int64) string {
	ledger := w.store.positions(ctx, w.place)
	for partition, end := range ends {
		if at, found := ledger[fmt.Sprintf("%s/%d", w.place.Topic, partition)]; !found || at < end {
			return fmt.Sprintf("the ledger has %v, and %s/%d was to reach %d", ledger, w.place.Topic, partition, end)
		}
	}
	return ""
}

// counting returns the sum of the positions in a server's ledger.
func (w *world) counting(ctx context.Context, n *node) (int64, bool) {
	ledger := n.ledger(ctx, w.place)
	sum := int64(0)
	for _, at := range ledger {
		sum += at
	}
	return sum, len(ledger) > 0
}

// keepLogs writes the consumers' logs to a directory, and returns its path.
func (w *world) keepLogs() string {
	dir, err := os.MkdirTemp("", "standings-chaos-"+w.mode+"-")
	if err != nil {
		return err.Error()
	}
	for _, c := range w.place.Consumers() {
		name := filepath.Join(dir, fmt.Sprintf("consumer-%03d.log", c.Number))
		if err := os.WriteFile(name, []byte(c.Log.Text()), 0o600); err != nil {
			return err.Error()
		}
	}
	return dir
}
