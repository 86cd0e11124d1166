package chaos

// This file publishes while everything else goes wrong: with plain and transactional producers, by a client
// that the consumer does not use. The producers record Kafka's responses, so that records that Kafka lost
// are not mistaken for records that the consumer lost.

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
)

// fate is Kafka's response about a record.
type fate byte

const (
	unknown   fate = iota // no reliable response
	committed             // acknowledged, and its transaction, if it has one, was committed
	aborted
)

// receipt describes a record that has an offset.
type receipt struct {
	value uint64 // hash of its value
	fate  fate
}

// published holds the knowledge of all producers.
type published struct {
	seed maphash.Seed

	mu       sync.Mutex
	receipts map[oracle.At]receipt
	lost     int // records without an offset: Kafka may or may not have them
	given    int // records handed to Kafka
}

func newPublished() *published {
	return &published{seed: maphash.MakeSeed(), receipts: map[oracle.At]receipt{}}
}

func (p *published) note(r *kgo.Record, f fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receipts[oracle.At{Partition: int(r.Partition), Offset: r.Offset}] = receipt{maphash.Bytes(p.seed, r.Value), f}
}

func (p *published) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given += n
}

func (p *published) loseTrack(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost += n
}

func (p *published) sum() Events {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := Events{Published: p.given, Unknown: p.lost}
	for _, r := range p.receipts {
		switch r.fate {
		case committed:
			e.Committed++
		case aborted:
			e.Aborted++
		case unknown:
			e.Unknown++
		}
	}
	return e
}

// producers publish until they are stopped.
type producers struct {
	place      *harness.Place
	published  *published
	partitions atomic.Int32  // number of partitions known to every producer
	wanted     atomic.Int32  // events of a requested burst
	ending     chan struct{} // closed to stop them
	once       sync.Once
	running    sync.WaitGroup
}

const (
	plainProducers         = 2
	transactionalProducers = 2
	eventsInBurst          = 6000
)

// startProducers starts all producers, each with a seed of its own.
func startProducers(t *testing.T, place *harness.Place, seed uint64, partitions int) *producers {
	t.Helper()
	p := &producers{place: place, published: newPublished(), ending: make(chan struct{})}
	p.partitions.Store(int32(partitions))
	for n := range plainProducers {
		p.running.Go(func() { p.plain(t, rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
	for n := range transactionalProducers {
		p.running.Go(func() { p.transactional(t, n, rand.New(rand.NewPCG(seed, uint64(100+n)))) })
	}
	t.Cleanup(p.end)
	return p
}

// end stops the producers, and returns when each has received its outstanding responses.
func (p *producers) end() {
	p.once.Do(func() { close(p.ending) })
	p.running.Wait()
}

// rest waits for a duration; it returns false if the producers must stop.
func (p *producers) rest(d time.Duration) bool {
	select {
	case <-p.ending:
		return false
	case <-time.After(d):
		return true
	}
}

// client returns a client that discovers new partitions quickly, and gives up a record that Kafka has not
// acknowledged within a minute: that would be a fault that this test does not look for.
func (p *producers) client(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(p.place.Kafka.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(p.place.Topic),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(time.Second),
		kgo.RecordDeliveryTimeout(time.Minute), kgo.MaxBufferedRecords(4 * eventsInBurst),
	}, more...)...)
}

// plain publishes a few events continuously and occasionally a burst, whose batches are swept piece by
// piece.
func (p *producers) plain(t *testing.T, r *rand.Rand) {
	t.Helper()
	client, err := p.client()
	if err != nil {
		t.Errorf("a producer: %v", err)
		return
	}
	defer client.Close()
	var waiting sync.WaitGroup
	for p.rest(time.Duration(20+r.IntN(60)) * time.Millisecond) {
		events := 1 + r.IntN(20)
		if r.IntN(250) == 0 {
			events = eventsInBurst/2 + r.IntN(eventsInBurst/2)
		}
		events += int(p.wanted.Swap(0))
		p.published.give(events)
		waiting.Add(events)
		for range events {
			// Not cancelled by end, which waits for these records.
			client.Produce(context.Background(), event(r, r.IntN(int(p.partitions.Load()))), func(record *kgo.Record, err error) {
				defer waiting.Done()
				if err != nil {
					p.published.loseTrack(1)
					return
				}
				p.published.note(record, committed)
			})
		}
	}
	waiting.Wait()
}

// transactional publishes transactions of some records in some partitions; one in four is aborted, and some
// remain open for a while.
func (p *producers) transactional(t *testing.T, n int, r *rand.Rand) {
	t.Helper()
	for again := true; again; {
		client, err := p.client(kgo.TransactionalID(fmt.Sprintf("%s-%d", p.place.Prefix, n)), kgo.TransactionTimeout(time.Minute))
		if err != nil {
			t.Errorf("a transactional producer: %v", err)
			return
		}
		// The last producer with this name may have left a transaction open; this call ends it.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, _, err = client.ProducerID(ctx)
		cancel()
		known := err == nil
		for known && again {
			if again = p.rest(time.Duration(20+r.IntN(150)) * time.Millisecond); again {
				known = p.transaction(client, r)
			}
		}
		client.Close()
		again = again || !known
	}
}

// transaction runs one transaction, and reports whether its outcome is known.
func (p *producers) transaction(client *kgo.Client, r *rand.Rand) bool {
	commit, open := r.IntN(4) != 0, time.Duration(0)
	if r.IntN(10) == 0 {
		open = time.Duration(r.IntN(2000)) * time.Millisecond
	}
	if client.BeginTransaction() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 70*time.Second)
	defer cancel()
	records := make([]*kgo.Record, 1+r.IntN(40))
	for i := range records {
		records[i] = event(r, r.IntN(int(p.partitions.Load())))
	}
	p.published.give(len(records))
	results := client.ProduceSync(ctx, records...)
	p.rest(open)
	failed := results.FirstErr() != nil
	err := client.EndTransaction(ctx, kgo.TransactionEndTry(commit && !failed))
	for _, result := range results {
		switch {
		case result.Err != nil:
			p.published.loseTrack(1)
		case err != nil:
			p.published.note(result.Record, unknown)
		case commit && !failed:
			p.published.note(result.Record, committed)
		default:
			p.published.note(result.Record, aborted)
		}
	}
	return err == nil && !failed
}

// burst makes a plain producer publish many events at once, soon.
func (p *producers) burst() { p.wanted.Store(3 * eventsInBurst) }

// grew tells the producers about added partitions, once all of their clients know them.
func (p *producers) grew(total int) {
	time.AfterFunc(3*time.Second, func() { p.partitions.Store(int32(total)) })
}
