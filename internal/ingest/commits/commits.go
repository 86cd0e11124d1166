// Package commits writes the offsets of partitions to Kafka. No partition is read from a committed offset: the ledger
// in Redis holds the positions.
package commits

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
)

// Pending writes the partitions' offsets to Kafka: for lag monitors, to distinguish a lost Redis from a first
// start, and to store a trail with each offset. No partition is read from a committed offset, so a commit that
// fails or is late costs only what its trail would have recorded.
type Pending struct {
	commit func(map[string]map[int]kafkaconn.Commit) error // commits for the generation
	log    *zap.Logger
	failed bool // the last commit failed, so it is logged once; guarded by sending, in flush

	// sending is held while offsets are being sent. So a start's offsets are sent after all that the worker had
	// pending, and no older offset overwrites them. It is acquired before mu.
	sending chan struct{}

	mu      sync.Mutex // guards pending and last, and is never held while Kafka is called
	pending map[string]map[int]Progress
	last    map[string]map[int]Progress // of each partition: the offset that is committed again
}

// Progress is how far a partition has come.
type Progress struct {
	Offset int64
	Trail  trail.Trail
	Plan   string // metadata in place of the trail: the partition will start at the offset, and nothing was read
}

// New returns commits that are sent through commit. They are sent by Run.
func New(commit func(map[string]map[int]kafkaconn.Commit) error, log *zap.Logger) *Pending {
	return &Pending{commit: commit, log: log, sending: make(chan struct{}, 1)}
}

// At records the end of an applied batch.
func (c *Pending) At(topic string, partition int, offset int64, t trail.Trail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range []*map[string]map[int]Progress{&c.pending, &c.last} {
		if *all == nil {
			*all = map[string]map[int]Progress{}
		}
		if (*all)[topic] == nil {
			(*all)[topic] = map[int]Progress{}
		}
		(*all)[topic][partition] = Progress{Offset: offset, Trail: t}
	}
}

// Still commits the position of an idle partition again if the last offset committed for it differs. There are
// two causes. A process that starts the topic again commits its plan for all partitions, even if it then finds
// that another process has started the topic. And a late piece can move the ledger back to where it was before
// its worker read it.
func (c *Pending) Still(topic string, partition int, offset int64, t trail.Trail) {
	c.mu.Lock()
	last, known := c.last[topic][partition]
	c.mu.Unlock()
	if !known || last.Offset != offset {
		c.At(topic, partition, offset, t)
	}
}

// againEvery is how often offsets that were already committed are committed again. A worker that starts a topic
// also commits offsets for the partitions of other workers. If that commit arrives late, it overwrites their
// newer commits; in a partition without new events, it would stay.
const againEvery = 30 * time.Second

// again makes the last offsets of all partitions pending again.
func (c *Pending) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = make(map[string]map[int]Progress, len(c.last))
	for topic, offsets := range c.last {
		c.pending[topic] = maps.Clone(offsets)
	}
}

// send commits offsets with their metadata.
func (c *Pending) send(all map[string]map[int]Progress) error {
	commits := make(map[string]map[int]kafkaconn.Commit, len(all))
	for topic, offsets := range all {
		commits[topic] = make(map[int]kafkaconn.Commit, len(offsets))
		for p, o := range offsets {
			commits[topic][p] = kafkaconn.Commit{Offset: o.Offset, Metadata: cmp.Or(o.Plan, o.Trail.String())}
		}
	}
	return c.commit(commits)
}

// Now commits offsets and waits for the answer or the end of ctx: the generation's own call takes no context
// and has its own deadline. Offsets of these partitions that were pending are obsolete and are dropped.
func (c *Pending) Now(ctx context.Context, offsets map[int]Progress, topic string) error {
	done := make(chan error, 1)
	go func() {
		c.sending <- struct{}{}
		defer func() { <-c.sending }()
		c.mu.Lock()
		for p, offset := range offsets {
			delete(c.pending[topic], p)
			if offset.Plan != "" { // a plan must not overwrite what the workers commit later
				delete(c.last[topic], p)
			} else if _, ours := c.last[topic][p]; ours {
				c.last[topic][p] = offset
			}
		}
		c.mu.Unlock()
		done <- c.send(map[string]map[int]Progress{topic: offsets})
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("commit where %s begins: %w", topic, err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Flush commits the pending offsets. If that fails they stay pending, except those that at has replaced
// meanwhile.
func (c *Pending) Flush() {
	c.sending <- struct{}{}
	defer func() { <-c.sending }()
	c.mu.Lock()
	all := c.pending
	c.pending = nil
	c.mu.Unlock()
	maps.DeleteFunc(all, func(_ string, offsets map[int]Progress) bool { return len(offsets) == 0 })
	if len(all) == 0 {
		return
	}
	err := c.send(all)
	if err == nil {
		c.failed = false
		return
	}
	if !c.failed {
		c.log.Warn("could not commit offsets, retrying; the ledger in Redis has the positions, so nothing is lost", zap.Error(err))
	}
	c.failed = true
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, offsets := range all {
		if c.pending == nil {
			c.pending = map[string]map[int]Progress{}
		}
		maps.Copy(offsets, c.pending[topic])
		c.pending[topic] = offsets
	}
}

// Run commits at intervals of every until the generation ends, and a last time when its workers have stopped.
func (c *Pending) Run(ctx context.Context, every time.Duration, workers *sync.WaitGroup) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for again := time.Now().Add(againEvery); ; {
		select {
		case now := <-tick.C:
			if ctx.Err() != nil { // both channels are ready: commit only once more, after the workers have stopped
				continue
			}
			if !now.Before(again) {
				again = now.Add(againEvery)
				c.again()
			}
			c.Flush()
		case <-ctx.Done():
			workers.Wait()
			c.Flush()
			return
		}
	}
}

// TrailOf returns the trail in a commit's metadata; an empty one if another program wrote the metadata.
func TrailOf(c kafkaconn.Commit) trail.Trail {
	t, err := trail.Parse(c.Metadata)
	if err != nil {
		return trail.Trail{}
	}
	return t
}
