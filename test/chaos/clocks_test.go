package chaos

// The replicas' clocks are wrong: they differ from each other, and from the clock of Redis, Kafka and the
// test, which run on one machine. Some are ahead, some are behind, and a restarted replica's clock has
// jumped.
//
// Which events count, and in which windows, does not depend on these clocks. The record's time decides
// whether an event is late, early or too far in the future, and max_future need not allow for clock errors.
// Redis's clock decides when keys expire, bans end and windows become final. A replica's own clock only
// affects when it does work that may be done later:
//
//  - it seals a season once both clocks have passed its end, so a replica that is behind seals later
//  - the leader's lease and all timeouts use elapsed time

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/standings/standings/test/harness"
)

// The range of a replica's difference from Redis's clock. Differences above a minute are logged.
const (
	leastApart = 30 * time.Second
	mostApart  = 90 * time.Second
)

// clocksAre selects how clocks are wrong.
type clocksAre int

const (
	apart clocksAre = iota
	ahead           // all are ahead
	right
)

// clocks chooses how far the clock of a newly started replica is ahead; a negative value means behind.
type clocks struct {
	mu     sync.Mutex
	random []*rand.Rand // per slot; nil before its first replica
	seed   uint64
	are    clocksAre
}

func newClocks(seed uint64) *clocks {
	return &clocks{seed: seed, random: make([]*rand.Rand, consumers)}
}

// next returns the clock offset of a slot's next replica. One in three is behind; among the first replicas
// it is the second.
func (c *clocks) next(slot int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.are == right {
		return 0
	}
	first := c.random[slot] == nil
	if first {
		c.random[slot] = rand.New(rand.NewPCG(c.seed, 500+uint64(slot)))
	}
	behind := c.random[slot].IntN(3) == 0
	if first {
		behind = slot == 1
	}
	by := between(c.random[slot], leastApart, mostApart)
	if behind && c.are != ahead {
		by = -by
	}
	return by.Truncate(time.Second)
}

// set selects how the clocks of all replicas started from now on are wrong.
func (c *clocks) set(to clocksAre) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.are = to
}

// start starts a slot's next replica.
func (w *world) start(slot int) *harness.Consumer {
	return w.place.StartAhead(w.t, w.clocks.next(slot))
}

// apart returns how far the replicas' clocks were behind and ahead at most, according to their logs.
func (w *world) apart() Clocks {
	var most Clocks
	for _, c := range w.place.Consumers() {
		by := c.Log.Ahead().Seconds()
		most.Behind, most.Ahead = max(most.Behind, -by), max(most.Ahead, by)
	}
	return most
}
