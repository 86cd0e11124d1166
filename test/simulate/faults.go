package simulate

// This file defines faults: what can go wrong in a world, when, and for which process or server.

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/test/simulate/redissim"
)

// fault is a single fault, which is due from a step on.
type fault struct {
	at   int    // due from this step on
	kind string // one of the kinds below
	on   string // the kind of call that it affects; empty if it does not concern a call
	n    int    // selects what the kind leaves open: a key, a delay, a size
}

func (f fault) String() string {
	if f.on == "" {
		return fmt.Sprintf("step %d: %s (%d)", f.at, f.kind, f.n)
	}
	return fmt.Sprintf("step %d: %s on %s (%d)", f.at, f.kind, f.on, f.n)
}

// The kinds, as the report names them.
const (
	cutBefore  = "connection cut, nothing done"
	cutMidway  = "connection cut in the middle of an answer"
	lostAnswer = "done, answer lost"
	silence    = "never done, no answer"
	lateDone   = "done after the caller gave up"
	slow       = "slow, others first"
	refused    = "error answer"
	dies       = "script dies midway"
	crash      = "crash"

	publish   = "records are published"
	endOpen   = "open transactions end"
	stop      = "a process is told to stop"
	start     = "a process is added"
	cutOff    = "a process is cut off, and others take over"
	zombie    = "a zombie beside its successor"
	rebalance = "rebalance"
	rollback  = "Redis goes back"
	wipe      = "Redis is wiped"
	evict     = "Redis evicts a key"
	hold      = "a hold on the boards"
	clock     = "Redis's clock jumps"
	leap      = "Redis's clock leaps over the end of a window's life"
	flush     = "scripts flushed"
	grow      = "a partition is added"
	truncate  = "retention moves the log's start"
	stale     = "a leader doesn't know the log's end"
	gapOpens  = "retention overtakes the consumer"
	rebuilds  = "a rebuild starts"
	sleeps    = "a rebuild sleeps past its lease"
	wait      = "everybody waits for long"
	refuses   = "Redis refuses a connection"

	errorCode = "Kafka answers with an error code"
)

var redisCalls = []string{"apply", "apply", "apply", "apply", "begin", "state", "position", "report"}
var kafkaCalls = []string{"fetch", "fetch", "fetch", "produce", "produce", "commit", "metadata", "offsets", "committed", "join", "sync", "leave", "config"}

// faults draws the faults. Each world omits some kinds, because together they would hide each other.
func (d *drawer) faults(p *plan) {
	const steps = 220
	for i := p.first; i < len(p.sendings); i++ {
		p.events = append(p.events, fault{at: d.IntN(120), kind: publish, n: i})
	}
	p.events = append(p.events, fault{at: 60 + d.IntN(80), kind: endOpen, n: d.IntN(100)})
	if d.narrow { // the next process continues with less memory
		p.events = append(p.events, fault{at: 10 + d.IntN(40), kind: crash, on: inSweep, n: d.IntN(1 << 16)})
	} else if d.IntN(12) == 0 {
		return // a quiet world: its accounting must be exact
	}
	all := []string{
		cutBefore, cutMidway, stale, stale, lostAnswer, lostAnswer, silence, lateDone, lateDone, slow, slow, refused, refused, dies, crash, crash, crash,
		stop, start, start, cutOff, zombie, zombie, rebalance, rebalance, rollback, rollback, rollback, wipe, evict, hold, clock, flush, grow, truncate, gapOpens, wait, rebuilds, rebuilds,
	}
	if d.IntN(6) == 0 { // without small jumps, which might lead back
		all = slices.DeleteFunc(all, func(kind string) bool { return kind == clock })
		p.events = append(p.events, fault{at: d.IntN(100), kind: leap, n: d.IntN(1 << 16)})
	}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:3+d.IntN(8)]
	for range 1 + d.IntN(10) {
		f := fault{at: d.IntN(d.pick(40, 100, steps)), kind: pick(d, all...), n: d.IntN(1 << 16)}
		switch f.kind {
		case cutBefore, lostAnswer, silence, slow, crash, refused:
			f.on = pick(d, redisCalls...)
			if d.IntN(2) == 0 {
				f.on = pick(d, kafkaCalls...)
			}
		case cutMidway:
			f.on = "fetch"
		case stale: // mostly while some process is further ahead
			f.at += 20
		case lateDone:
			// Not a commit: the commits of a generation use one connection, in order.
			f.on = pick(d, "apply", "apply", "apply", "begin", "produce")
		case dies:
			f.on = pick(d, "apply", "apply", "apply", "begin")
		}
		if d.long && f.on == "apply" && d.IntN(2) == 0 {
			f.on = inSweep
		}
		if f.kind == rebuilds { // and something happens to the rebuild
			some := fault{at: f.at, kind: pick(d, cutBefore, lostAnswer, silence, lateDone, slow, refused, dies, crash, crash), on: "rebuild", n: d.IntN(1 << 16)}
			some.at += d.IntN(40)
			p.events = append(p.events, some)
			if d.IntN(4) > 0 {
				d.swap(p, f.at)
			}
			if d.IntN(4) == 0 {
				p.events = append(p.events, fault{at: some.at + d.IntN(40), kind: sleeps, n: d.IntN(1 << 16)})
			}
		}
		p.events = append(p.events, f)
	}
}

// more draws what earlier worlds did not have, from a generator of its own, so that their other draws do
// not change.
func (d *drawer) more(p *plan) {
	d = &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x5199)), small: d.small, long: d.long, narrow: d.narrow}
	if d.IntN(4) == 0 {
		d.disorder(p)
	}
	if d.IntN(6) == 0 {
		d.collide(p)
	}
	if d.IntN(5) == 0 {
		p.setup.Readers = 1
	}
	p.setup.NoLetters = d.IntN(12) == 0
	if d.IntN(6) == 0 {
		p.events = append(p.events, fault{at: d.IntN(100), kind: pick(d, lettersDeleted, lettersDeleted, lettersNoLeader, lettersRefused), n: d.IntN(1 << 16)})
	}
	if d.long && d.IntN(4) == 0 { // the crashed process's piece arrives just before its successor's
		const apply = 8 // the index in meeting
		p.events = append(p.events, fault{at: d.IntN(60), kind: crash, on: inSweep, n: (10*d.IntN(100)+apply)<<7 | d.IntN(64)<<1 | 1})
	}
	if d.IntN(6) == 0 {
		d.topics(p)
	}
	if d.IntN(8) == 0 || d.long && d.IntN(2) == 0 {
		p.events = append(p.events, fault{at: d.IntN(80), kind: pick(d, quota, quota, empties, flaky, flaky), n: d.IntN(1 << 16)})
		if d.long && !d.narrow { // one sweep covers many responses, and a successor must continue it
			p.setup.FetchBytes = 1 << 10
			p.events = append(p.events, fault{at: 30 + d.IntN(60), kind: crash, on: inSweep, n: d.IntN(1 << 16)})
		}
	}
}

// inSweep is an apply in the middle of a sweep, other than its first piece.
const inSweep = "sweep"

// meets reports whether a fault affects a call.
func (f fault) meets(c *call) bool {
	return f.on == c.kind || f.on == inSweep && c.inSweep()
}

// swap draws what happens to a rebuild's swap, and delays a sending, so that a late swap finds the live
// boards further ahead. n is odd: the calls of a crashed process arrive late.
func (d *drawer) swap(p *plan, at int) {
	p.events = append(p.events, fault{
		at: at, kind: pick(d, lateDone, lateDone, lostAnswer, dies, crash, crash, crash, slow, silence), on: "swap", n: d.IntN(1<<16) | 1,
	})
	for i := range p.events {
		if e := &p.events[i]; e.kind == publish {
			e.at = 240
			return
		}
	}
}

// The errors of a Redis in trouble, and the faults that cause them.
var troubles = []struct {
	name  string
	fault redissim.Fault
}{
	{"OOM", redissim.Fault{Write: redissim.OutOfMemory}},
	{"LOADING", redissim.Fault{Refuse: redissim.Loading}},
	{"READONLY", redissim.Fault{Write: redissim.ReadOnly}},
	{"BUSY", redissim.Fault{Refuse: redissim.Busy}},
	{"MISCONF", redissim.Fault{Write: redissim.Misconf}},
	{"MASTERDOWN", redissim.Fault{Refuse: redissim.MasterDown}},
}

// Transient errors of brokers.
var kafkaErrors = []kafka.Error{
	kafka.NotLeaderForPartition, kafka.UnknownTopicOrPartition, kafka.LeaderNotAvailable,
	kafka.RequestTimedOut, kafka.NotEnoughReplicas, kafka.KafkaStorageError, kafka.Unknown,
}

var groupErrors = []kafka.Error{
	kafka.RebalanceInProgress, kafka.GroupCoordinatorNotAvailable, kafka.NotCoordinatorForGroup, kafka.UnknownMemberId,
}

// Transient error codes in the brokers' responses, by call: those of a partition or topic, and (wholeCodes)
// those of the whole request.
var kafkaCodes = map[string][]kafka.Error{
	"fetch": {
		kafka.NotLeaderForPartition, kafka.UnknownTopicOrPartition, kafka.KafkaStorageError, kafka.Unknown,
		kafka.FencedLeaderEpoch, kafka.UnknownLeaderEpoch, kafka.OffsetNotAvailable, kafka.ReplicaNotAvailable,
	},
	"produce": {
		kafka.NotEnoughReplicasAfterAppend, kafka.NotLeaderForPartition, kafka.NotEnoughReplicas, kafka.RequestTimedOut,
		kafka.UnknownTopicOrPartition, kafka.KafkaStorageError, kafka.Unknown,
	},
	"offsets": {
		kafka.NotLeaderForPartition, kafka.UnknownTopicOrPartition, kafka.LeaderNotAvailable, kafka.OffsetNotAvailable,
		kafka.KafkaStorageError, kafka.UnknownLeaderEpoch, kafka.Unknown,
	},
	"committed": {kafka.UnstableOffsetCommit, kafka.UnknownTopicOrPartition},
	"metadata":  {kafka.LeaderNotAvailable, kafka.UnknownTopicOrPartition, kafka.Unknown},
}

var wholeCodes = map[string][]kafka.Error{
	"fetch":     {kafka.FetchSessionIDNotFound, kafka.InvalidFetchSessionEpoch, kafka.Unknown},
	"committed": {kafka.GroupLoadInProgress, kafka.NotCoordinatorForGroup, kafka.GroupCoordinatorNotAvailable},
}
