package ingest

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

// commits writes to Kafka how far partitions have come: for lag monitors, to distinguish a lost Redis
// from a first start, and with each offset its trail. Nothing is read from where they are:
// a commit that fails or comes late costs nothing but what the trail would have known.
type commits struct {
	commit func(map[string]map[int]kafkaconn.Commit) error // the generation's
	log    *zap.Logger
	failed bool // the last time: logged once; of whoever has taken sending, in flush

	// sending is taken while offsets are on their way, so that those that are set at a
	// start come after whatever the worker had pending, and nothing comes over them.
	// It is taken before mu.
	sending chan struct{}

	mu      sync.Mutex // guards pending and last, and is never held while Kafka is called
	pending map[string]map[int]progress
	last    map[string]map[int]progress // of each partition, of all that at was given
}

// progress is how far a partition has come.
type progress struct {
	offset int64
	trail  trail.Trail
	plan   string // metadata instead of the trail: the partition is to begin at the offset, and nothing was read
}

func newCommits(commit func(map[string]map[int]kafkaconn.Commit) error, log *zap.Logger) *commits {
	return &commits{commit: commit, log: log, sending: make(chan struct{}, 1)}
}

// at notes the end of a batch that is through.
func (c *commits) at(topic string, partition int, offset int64, t trail.Trail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range []*map[string]map[int]progress{&c.pending, &c.last} {
		if *all == nil {
			*all = map[string]map[int]progress{}
		}
		if (*all)[topic] == nil {
			(*all)[topic] = map[int]progress{}
		}
		(*all)[topic][partition] = progress{offset: offset, trail: t}
	}
}

// still commits the position of an idle partition again if another offset was committed for it. A process that starts
// the topic again commits its plan for all partitions, even if it then finds that another process had started it. And a
// late piece can move the ledger back to where it was before its worker read it.
func (c *commits) still(topic string, partition int, offset int64, t trail.Trail) {
	c.mu.Lock()
	last, known := c.last[topic][partition]
	c.mu.Unlock()
	if !known || last.offset != offset {
		c.at(topic, partition, offset, t)
	}
}

// againEvery is how often offsets are committed that were before. Whoever sets where all
// partitions of a topic start commits that for others, too; if that call comes late, it
// comes over what they have committed since, and where no event follows it would stay.
const againEvery = 30 * time.Second

// again has all be committed once more.
func (c *commits) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = make(map[string]map[int]progress, len(c.last))
	for topic, offsets := range c.last {
		c.pending[topic] = maps.Clone(offsets)
	}
}

// send commits.
func (c *commits) send(all map[string]map[int]progress) error {
	commits := make(map[string]map[int]kafkaconn.Commit, len(all))
	for topic, offsets := range all {
		commits[topic] = make(map[int]kafkaconn.Commit, len(offsets))
		for p, o := range offsets {
			commits[topic][p] = kafkaconn.Commit{Offset: o.offset, Metadata: cmp.Or(o.plan, o.trail.String())}
		}
	}
	return c.commit(commits)
}

// now commits offsets and waits for the answer, or for the context's end: the
// generation's own call knows no context, and has a deadline of its own. What is pending
// of these partitions is of before and forgotten.
func (c *commits) now(ctx context.Context, offsets map[int]progress, topic string) error {
	done := make(chan error, 1)
	go func() {
		c.sending <- struct{}{}
		defer func() { <-c.sending }()
		c.mu.Lock()
		for p, offset := range offsets {
			delete(c.pending[topic], p)
			if offset.plan != "" { // it must not come over what the workers commit later
				delete(c.last[topic], p)
			} else if _, ours := c.last[topic][p]; ours {
				c.last[topic][p] = offset
			}
		}
		c.mu.Unlock()
		done <- c.send(map[string]map[int]progress{topic: offsets})
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

// flush commits what is pending; what fails stays pending unless it has moved on.
func (c *commits) flush() {
	c.sending <- struct{}{}
	defer func() { <-c.sending }()
	c.mu.Lock()
	all := c.pending
	c.pending = nil
	c.mu.Unlock()
	maps.DeleteFunc(all, func(_ string, offsets map[int]progress) bool { return len(offsets) == 0 })
	if len(all) == 0 {
		return
	}
	err := c.send(all)
	if err == nil {
		c.failed = false
		return
	}
	if !c.failed {
		c.log.Warn("couldn't commit offsets, trying again; the ledger says where partitions stand, so nothing is lost", zap.Error(err))
	}
	c.failed = true
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, offsets := range all {
		if c.pending == nil {
			c.pending = map[string]map[int]progress{}
		}
		maps.Copy(offsets, c.pending[topic])
		c.pending[topic] = offsets
	}
}

// run commits every now and then until the generation ends, and a last time
// when its workers have stopped.
func (c *commits) run(ctx context.Context, every time.Duration, workers *sync.WaitGroup) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for again := time.Now().Add(againEvery); ; {
		select {
		case now := <-tick.C:
			if ctx.Err() != nil { // both are ready: chance mustn't say whether the last one is the second
				continue
			}
			if !now.Before(again) {
				again = now.Add(againEvery)
				c.again()
			}
			c.flush()
		case <-ctx.Done():
			workers.Wait()
			c.flush()
			return
		}
	}
}

// trailOf is the trail in a commit's metadata; none if that is another program's.
func trailOf(c kafkaconn.Commit) trail.Trail {
	t, err := trail.Parse(c.Metadata)
	if err != nil {
		return trail.Trail{}
	}
	return t
}
