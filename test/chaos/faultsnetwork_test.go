package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

var networkFaults = []fault{
	{kind: "network to Redis: cut", group: ofRedis, do: cutRedis},
	{kind: "network to Redis: slow", group: ofRedis, do: slowRedis},
	{kind: "network to Redis: half-open", group: ofRedis, do: halfOpenRedis},
	{kind: "network to Kafka: cut", group: ofKafka, do: cutKafka},
	{kind: "network to Kafka: slow", group: ofKafka, do: slowKafka},
	{kind: "network to Kafka: half-open", group: ofKafka, do: halfOpenKafka},
}

// cutRedis cuts all connections, for a moment or longer.
func cutRedis(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	n := w.store.target(ctx, w.place, r)
	before := n.clients(ctx)
	n.network.cut()
	time.Sleep(between(r, 0, 3*time.Second))
	err := n.network.mend()
	return func() string {
		now, gone := n.clients(ctx), 0
		for id := range before {
			if !now[id] {
				gone++
			}
		}
		if now == nil || gone == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %d connections ended", gone, len(before))
	}, err
}

// slow delays a network in both directions, and returns the delay.
func (n *network) slow(r *rand.Rand, least, most time.Duration) (delay time.Duration, err error) {
	delay = between(r, least, most)
	for _, direction := range []string{"upstream", "downstream"} {
		if err := n.poison("latency", direction, map[string]int64{"latency": delay.Milliseconds() / 2, "jitter": delay.Milliseconds() / 4}); err != nil {
			return 0, err
		}
	}
	return delay, nil
}

func slowRedis(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	n := w.store.target(ctx, w.place, r)
	delay, err := n.network.slow(r, 20*time.Millisecond, 1500*time.Millisecond)
	defer n.network.heal()
	if err != nil {
		return nothing, err
	}
	c := redis.NewClient(&redis.Options{Addr: n.network.address, ClientName: "chaos", MaxRetries: -1, ReadTimeout: 10 * time.Second})
	defer func() { _ = c.Close() }()
	begun := time.Now()
	err = c.Ping(ctx).Err()
	took := time.Since(begun)
	time.Sleep(between(r, time.Second, 6*time.Second))
	if err != nil || took < delay/2 {
		return nothing, nil
	}
	return saw("a first PING took %d ms", took.Milliseconds()), nil
}

func slowKafka(w *world, r *rand.Rand) (func() string, error) {
	delay, err := w.toKafka.slow(r, 20*time.Millisecond, 800*time.Millisecond)
	defer w.toKafka.heal()
	if err != nil {
		return nothing, err
	}
	begun := time.Now()
	err = pingKafka(w.t.Context(), w.toKafka.address, 10*time.Second)
	took := time.Since(begun)
	time.Sleep(between(r, time.Second, 6*time.Second))
	if err != nil || took < delay/2 {
		return nothing, nil
	}
	return saw("a first request took %d ms", took.Milliseconds()), nil
}

// halfOpen drops everything in one direction for a while: either requests or responses.
func halfOpen(r *rand.Rand, n *network) (direction string, err error) {
	direction = []string{"upstream", "downstream"}[r.IntN(2)]
	return direction, n.poison("timeout", direction, map[string]int64{"timeout": 0})
}

// lostWords names what a half-open network loses.
var lostWords = map[string]string{"upstream": "requests", "downstream": "answers"}

func halfOpenRedis(w *world, r *rand.Rand) (func() string, error) {
	n := w.store.target(w.t.Context(), w.place, r)
	return stoodStill(w, r, n.network, n)
}

func halfOpenKafka(w *world, r *rand.Rand) (func() string, error) {
	return stoodStill(w, r, w.toKafka, w.store.target(w.t.Context(), w.place, r))
}

// stoodStill makes a network half-open. The effect is that a server's ledgers did not move meanwhile, or
// that clients opened new connections.
func stoodStill(w *world, r *rand.Rand, n *network, server *node) (func() string, error) {
	ctx := w.t.Context()
	hold := between(r, 2*time.Second, 6*time.Second)
	direction, err := halfOpen(r, n)
	defer n.heal()
	if err != nil {
		return nothing, err
	}
	const inFlight = 700 * time.Millisecond
	time.Sleep(inFlight)
	opened := n.accepted.Load()
	before, told := w.counting(ctx, server)
	time.Sleep(hold - inFlight)
	after, stillTold := w.counting(ctx, server)
	again := n.accepted.Load() - opened
	still := told && stillTold && before == after
	if !still && again == 0 {
		return nothing, nil
	}
	text := fmt.Sprintf("%s were lost for %.1f s, %d connections were opened anew", lostWords[direction], hold.Seconds(), again)
	if still {
		text += ", nothing was counted"
	}
	return saw("%s", text), nil
}

// cutKafka cuts all connections to Kafka, for less than a session or for more.
func cutKafka(w *world, r *rand.Rand) (func() string, error) {
	away := between(r, 0, sessionTimeout+2*time.Second)
	w.toKafka.cut()
	opened := w.toKafka.accepted.Load()
	time.Sleep(away)
	err := w.toKafka.mend()
	return func() string {
		again := w.toKafka.accepted.Load() - opened
		if again == 0 {
			return ""
		}
		return fmt.Sprintf("away for %.1f s, %d connections were opened anew", away.Seconds(), again)
	}, err
}
