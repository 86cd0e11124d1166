package ingest

// A replay onto standings that were loaded from a snapshot: an event counts only where it doesn't yet.

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/loaded"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Onto is what a replay finds in its standings as it begins.
type Onto struct {
	Counted map[string]*fold.Counted // by field, of the partitions that the snapshot has
	Final   *fold.Sealed             // windows that take nothing
}

// of is what counts already of a partition; of one that the snapshot doesn't have nothing does.
func (o *Onto) of(field string) *fold.Counted {
	if c := o.Counted[field]; c != nil {
		return c
	}
	return &fold.Counted{Before: math.MinInt64}
}

// Missed reports whether an event was met that nobody had found before, between the snapshot's first
// and last position: the log isn't what it was.
func (o *Onto) Missed() bool {
	for _, c := range o.Counted {
		if c.Missed() {
			return true
		}
	}
	return false
}

// GoOnto has the replay leave out what counts already. It is called before To.
func (r *Replay) GoOnto(o *Onto) { r.onto = o }

// RulesFingerprint is that of the rules by which the replay counts; 0 where they have no text.
func (r *Replay) RulesFingerprint() ledger.Fingerprint { return fingerprintOf(r.consumer.RulesText) }

// LooksBack is how many records before an offset are read, too, for repeats of theirs.
func (r *Replay) LooksBack() int64 { return r.consumer.Duplicates }

// Logs are what Kafka has of partitions, by fields of the ledger.
func (r *Replay) Logs(ctx context.Context, fields []string) (map[string]kafkaconn.Log, error) {
	topics, err := byTopic(fields)
	if err != nil {
		return nil, err
	}
	all := map[string]kafkaconn.Log{}
	for topic, partitions := range topics {
		last := partitions[0]
		for _, p := range partitions {
			last = max(last, p)
		}
		var logs map[int]kafkaconn.Log
		err := waitOut(ctx, func() (err error) {
			if _, err = r.await(ctx, topic, last); err == nil {
				logs, err = kafkaconn.Logs(ctx, r.consumer.kafka, topic, partitions...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for p, log := range logs {
			all[ledger.Partition{Topic: topic, Number: p}.String()] = log
		}
	}
	return all, nil
}

// Collect reads partitions, of each shard from an offset on and all to another, and adds to rows who has
// events there, in which windows. It writes nothing anywhere.
func (r *Replay) Collect(ctx context.Context, from []map[string]int64, to map[string]int64, rows *loaded.Rows) error {
	c := r.consumer.Config
	c.Standings, c.Stats = nil, new(Stats)
	for range from {
		c.Standings = append(c.Standings, &collector{rows: rows, at: map[string]string{}, numbers: map[ledger.Window]uint64{}})
	}
	collect := NewReplay(c)
	limits := map[string]ledger.Position{}
	for shard, fields := range from {
		for field, offset := range fields {
			p, err := ledger.ParsePartition(field)
			if err != nil {
				return err
			}
			if err := collect.Begin(ctx, shard, ledger.StartPosition{Partition: p, At: ledger.At(offset)}); err != nil {
				return err
			}
			if to[field] > offset {
				limits[field] = ledger.At(to[field])
			}
		}
	}
	for field := range limits { // one shard may have a partition that another was read too early for
		for shard, fields := range from {
			if _, ok := fields[field]; ok {
				continue
			}
			p, err := ledger.ParsePartition(field)
			if err != nil {
				return err
			}
			if err := collect.Begin(ctx, shard, ledger.StartPosition{Partition: p, At: limits[field]}); err != nil {
				return err
			}
		}
	}
	if err := collect.To(ctx, AllShards, limits); err != nil {
		return fmt.Errorf("find out who has events between the snapshot's positions: %w", err)
	}
	return nil
}

// collector are standings of a shard in which nothing is kept but who has events.
type collector struct {
	rows *loaded.Rows

	mu      sync.Mutex
	at      map[string]string // the ledger
	numbers map[ledger.Window]uint64
}

func (c *collector) Apply(_ context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	field := p.Partition.String()
	if c.at[field] != p.Expected.String() {
		return ledger.Answer{Outcome: ledger.Moved, Found: c.at[field]}, 0, nil
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		for j := range g.Members {
			key := loaded.KeyOf(g.Members[j].ID)
			for _, w := range g.Windows {
				c.rows.Add(key, c.number(&p.Windows[w]))
			}
		}
	}
	c.at[field] = p.Next.String()
	return ledger.Answer{Outcome: ledger.Applied}, time.Since(began), nil
}

func (c *collector) number(w *ledger.Window) uint64 {
	n, ok := c.numbers[*w]
	if !ok {
		n = c.rows.NumberFor(w.Board, w.Period, w.Name)
		c.numbers[*w] = n
	}
	return n
}

func (*collector) Check(context.Context, *ledger.Piece) (ledger.Answer, error) {
	return ledger.Answer{Outcome: ledger.Fits}, nil
}

func (c *collector) Position(_ context.Context, p ledger.Partition) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[p.String()], nil
}

func (c *collector) State(context.Context) (ledger.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ledger.State{Now: time.Now(), Asked: time.Now(), Ledger: map[string]string{}, Origins: map[string]string{}}
	for field, text := range c.at {
		s.Ledger[field] = text
	}
	return s, nil
}

func (*collector) CheckSchema(string) error { return nil }

func (c *collector) Begin(_ context.Context, all []ledger.StartPosition) (ledger.StartResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range all {
		c.at[b.Partition.String()] = b.At.String()
	}
	return ledger.Began, nil
}

func (*collector) Report(context.Context, ledger.Partition, string) (string, error) { return "", nil }

func (*collector) ForgetRules(context.Context, ledger.Fingerprint) (int, error) { return 0, nil }

// Classify: no call fails.
func (*collector) Classify(error) ledger.Verdict { return ledger.Retry }
