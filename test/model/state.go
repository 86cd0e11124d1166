package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	maxEvents = 6 // three bits of a position hold an offset, with one code to spare
	maxHash   = 3
)

// position is the set of counted events that a ledger's text denotes: every event before from, and
// the events before end whose member's hash is below hash. It is encoded as from<<5 | end<<2 | hash.
// It is plain if from equals end.
type position uint8

// none is the position of a ledger without the partition.
const none position = 7 << 5

func plain(at int) position               { return position(at<<5 | at<<2) }
func sweeping(from, end, h int) position  { return position(from<<5 | end<<2 | h) }
func (p position) from() int              { return int(p >> 5) }
func (p position) end() int               { return int(p >> 2 & 7) }
func (p position) hash() int              { return int(p & 3) }
func (p position) isPlain() bool          { return p != none && p.from() == p.end() }
func (p position) ahead(of position) bool { return p != none && (of == none || p > of) }

func (p position) String() string {
	switch {
	case p == none:
		return "nothing"
	case p.isPlain():
		return fmt.Sprint(p.from())
	}
	return fmt.Sprintf("%d..%d@%d", p.from(), p.end(), p.hash())
}

// counts has two bits for each event: how often the event is in a window; 3 means 3 or more.
type counts uint16

func (c counts) add(events set) counts {
	for i := range maxEvents {
		if events.has(i) && c>>(2*i)&3 < 3 {
			c += 1 << (2 * i)
		}
	}
	return c
}

func (c counts) String() string {
	var b strings.Builder
	for i := range maxEvents {
		fmt.Fprint(&b, uint16(c>>(2*i)&3))
	}
	return b.String()
}

// set is a set of events. Bit i is the event at offset i.
type set uint8

func (s set) has(i int) bool { return s>>i&1 == 1 }

func (s set) String() string {
	var all []string
	for i := range maxEvents {
		if s.has(i) {
			all = append(all, fmt.Sprint(i))
		}
	}
	return "{" + strings.Join(all, " ") + "}"
}

// redis is the whole state of Redis, which goes back in time together.
type redis struct {
	ledger position
	torn   bool   // a script died after its first write: the ledger is torn:<ledger>
	window counts // a rebuild replaces it
	kept   counts // a window older than the log, which a rebuild keeps
	// damaged: the kept window is shown as incomplete, and nothing is promised about its scores.
	damaged bool

	rebuild      phase
	shadow       position
	shadowWindow counts
	hold         bool
}

type phase uint8

const (
	noRebuild phase = iota
	rebuilding
	swapped
)

// call is a piece on its way to Redis, or waiting there.
type call struct {
	on             bool
	waiter         int8 // the consumer that waits for the answer; nobody if it gave up
	resent         bool // only used by variants
	expected, next position
	events         set
}

const nobody = -1

// consumer is a consumer's memory: empty, or the call whose answer it awaits.
type consumer struct {
	waiting, stopped bool
	expected, next   position
	events           set
}

// budget limits how many faults of each kind may still happen.
type budget struct{ crash, timeout, rollback, wipe, death, rebuild int8 }

type state struct {
	redis
	older     redis // the state that Redis may go back to
	hasOlder  bool
	consumers [2]consumer
	network   [3]call
	letters   set // acknowledged by Kafka, which loses nothing
	budget    budget
}

// canonical maps states that differ only in the numbering of consumers or in the order of calls to
// one state.
func canonical(s state) state {
	if compareConsumers(s.consumers[0], s.consumers[1]) > 0 {
		s.consumers[0], s.consumers[1] = s.consumers[1], s.consumers[0]
		for i := range s.network {
			if s.network[i].on && s.network[i].waiter != nobody {
				s.network[i].waiter = 1 - s.network[i].waiter
			}
		}
	}
	slices.SortFunc(s.network[:], compareCalls)
	return s
}

func compareConsumers(a, b consumer) int {
	return cmp.Or(compareBool(a.waiting, b.waiting), compareBool(a.stopped, b.stopped),
		cmp.Compare(a.expected, b.expected), cmp.Compare(a.next, b.next), cmp.Compare(a.events, b.events))
}

func compareCalls(a, b call) int {
	return cmp.Or(compareBool(a.on, b.on), cmp.Compare(a.waiter, b.waiter), compareBool(a.resent, b.resent),
		cmp.Compare(a.expected, b.expected), cmp.Compare(a.next, b.next), cmp.Compare(a.events, b.events))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
