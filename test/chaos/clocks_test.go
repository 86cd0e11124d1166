package chaos

// The clocks of replicas are apart: from each other, and from Redis's, Kafka's and the test's, which are one
// machine's. Some are ahead, some behind, and a replica that is started again has jumped.
//
// What counts, and in which windows, doesn't depend on them: an event is late, early or too far in the future
// by its record's time, and max_future needn't allow for it; when keys go, bans end and windows are final is
// for Redis's clock to say. What depends on a replica's own is when it does what may be done later:
//
//   - it seals a season once both clocks are past it, so that one that is behind does so later
//   - the leader's lease and all timeouts go by the time that goes by

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/standings/standings/test/harness"
)

// How far a replica's clock is from Redis's: some are over a minute, from which it is logged.
const (
	leastApart = 30 * time.Second
	mostApart  = 90 * time.Second
)

// How clocks are.
type clocksAre int

const (
	apart clocksAre = iota
	ahead           // all of them
	right
)

// clocks say how far ahead the clock of a replica is that is started; less than nothing: behind.
type clocks struct {
	mu     sync.Mutex
	random []*rand.Rand // of each slot, nil before its first replica
	seed   uint64
	are    clocksAre
}

func newClocks(seed uint64) *clocks {
	return &clocks{seed: seed, random: make([]*rand.Rand, consumers)}
}

// next is that of a slot's next replica. One in three is behind: of the first ones the second.
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

// set says how the clocks are of every replica that is started from now on.
func (c *clocks) set(to clocksAre) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.are = to
}

// start starts a slot's next replica.
func (w *world) start(slot int) *harness.Consumer {
	return w.place.StartAhead(w.t, w.clocks.next(slot))
}

// apart is how far the clocks of replicas were behind and ahead at most, as their logs say.
func (w *world) apart() Clocks {
	var most Clocks
	for _, c := range w.place.Consumers() {
		by := c.Log.Ahead().Seconds()
		most.Behind, most.Ahead = max(most.Behind, -by), max(most.Ahead, by)
	}
	return most
}
