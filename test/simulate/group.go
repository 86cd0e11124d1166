package simulate

// This file simulates the consumer group: members, generations, and the coordinator, which assigns
// partitions with the leader's own balancer.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/kafkaconn"
)

const sessionTimeout = 10 * time.Second

// coordinator holds the state of the group. The world's lock protects it.
type coordinator struct {
	generation int32
	joins      int
	members    []*member // in order of joining: the first is the leader
	since      time.Time // start of the current rebalance; zero: none
}

// member is the membership of a process in the group.
type member struct {
	w       *world
	from    *process
	config  kafka.ConsumerGroupConfig
	name    string
	in      bool        // the coordinator counts it as a member
	waits   bool        // has joined, and waits for its assignment
	dealt   *generation // assigned, but not received yet
	current *generation // the generation that the member believes in
	expires time.Time   // when its session expires; zero: it sends heartbeats
}

// generation is a generation as one member sees it.
type generation struct {
	*group.Generation
	ending

	mu      sync.Mutex
	running int
	over    chan struct{} // closed once the generation has ended and its functions have returned
	isOver  bool
}

// ending is a context like those of kafka-go's generations. The standard library's contexts notify their
// children in the random order of a map.
type ending struct {
	once *sync.Once
	done chan struct{}
}

func newEnding() ending { return ending{new(sync.Once), make(chan struct{})} }

func (e ending) end() { e.once.Do(func() { close(e.done) }) }

func (e ending) Done() <-chan struct{}       { return e.done }
func (e ending) Deadline() (time.Time, bool) { return time.Time{}, false }
func (e ending) Value(any) any               { return nil }
func (e ending) Err() error {
	select {
	case <-e.done:
		return context.Canceled
	default:
		return nil
	}
}

func (p *process) join(config kafka.ConsumerGroupConfig) (group.Group, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.member.config = config
	return p.member, nil
}

// Next joins, and waits for the assignment.
func (m *member) Next(outer context.Context) (*group.Generation, error) {
	m.w.mu.Lock()
	g := m.current
	m.w.mu.Unlock()
	if g != nil {
		select {
		case <-g.over:
		case <-outer.Done():
			return nil, outer.Err()
		}
	}
	ctx, cancel := context.WithTimeout(outer, 2*sessionTimeout) // its connection has this timeout
	defer cancel()
	joined := &call{from: m.from, server: ofKafka, kind: "join", what: "join the group", writes: true}
	joined.do = func() (any, error) { m.w.group.join(m); return nil, nil }
	if _, err := m.w.park(ctx, joined); err != nil {
		return nil, err
	}
	deal := &call{from: m.from, server: ofKafka, kind: "sync", what: "learn what was dealt to it"}
	deal.ready = func() bool { return m.dealt != nil || !m.waits }
	deal.do = func() (any, error) {
		switch {
		case !m.in:
			return nil, kafka.UnknownMemberId
		case m.dealt == nil:
			return nil, kafka.RebalanceInProgress
		}
		m.current = m.dealt
		m.dealt = nil
		return m.current.Generation, nil
	}
	value, err := m.w.park(ctx, deal)
	if err != nil {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		m.waits, m.dealt, m.current = false, nil, nil
		return nil, err
	}
	dealt, ok := value.(*group.Generation)
	if !ok {
		panic("simulate: no generation was dealt")
	}
	return dealt, nil
}

// Close leaves the group.
func (m *member) Close() error {
	m.w.mu.Lock()
	g := m.current
	m.w.mu.Unlock()
	if g != nil {
		g.end()
		<-g.over
	}
	c := &call{from: m.from, server: ofKafka, kind: "leave", what: "leave the group", writes: true}
	c.do = func() (any, error) { m.w.group.expel(m); return nil, nil }
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := m.w.park(ctx, c)
	return err
}

func (c *coordinator) join(m *member) {
	if !m.in {
		c.joins++
		m.name, m.in = fmt.Sprintf("member-%d", c.joins), true
		c.members = append(c.members, m)
	}
	m.waits, m.dealt, m.expires = true, nil, time.Time{}
	if m.from.dead { // its last request
		m.expires = time.Now().Add(sessionTimeout)
	}
	c.rebalance()
}

// rebalance makes every member join again. They learn of it with their next heartbeat, except those that
// are cut off.
func (c *coordinator) rebalance() {
	if c.since.IsZero() {
		c.since = time.Now()
	}
	for _, m := range c.members {
		m.dealt = nil
		if !m.waits && m.current != nil && !m.from.deaf {
			m.current.end()
		}
	}
}

// expel removes a member, which may not learn of it.
func (c *coordinator) expel(m *member) {
	if !m.in {
		return
	}
	m.in, m.waits, m.dealt = false, false, nil
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
	c.rebalance()
}

// tick expels members that are silent for too long, and assigns partitions once all members wait.
func (c *coordinator) tick(w *world) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, m := range slices.Clone(c.members) {
		slow := !c.since.IsZero() && !m.waits && now.Sub(c.since) > sessionTimeout
		if slow || !m.expires.IsZero() && !now.Before(m.expires) {
			w.tellf("the group gives up %s of process %d", m.name, m.from.id)
			c.expel(m)
		}
	}
	if c.since.IsZero() || len(c.members) == 0 {
		return
	}
	for _, m := range c.members {
		if !m.waits {
			return
		}
	}
	c.deal(w)
}

// deal assigns the partitions.
func (c *coordinator) deal(w *world) {
	c.generation++
	c.since = time.Time{}
	var members []kafka.GroupMember
	for _, m := range c.members {
		members = append(members, kafka.GroupMember{ID: m.name, Topics: m.config.Topics})
	}
	var all []kafka.Partition
	for _, p := range w.kafka.partitions {
		if slices.ContainsFunc(members, func(m kafka.GroupMember) bool { return slices.Contains(m.Topics, p.topic) }) {
			all = append(all, kafka.Partition{Topic: p.topic, ID: p.number})
		}
	}
	leader := c.members[0]
	dealt := leader.config.GroupBalancers[0].AssignGroups(members, all)
	var said []string
	for _, m := range c.members {
		g := &generation{ending: newEnding(), over: make(chan struct{})}
		m.waits, m.dealt = false, g
		assignments := map[string][]int{}
		for t, partitions := range dealt[m.name] {
			assignments[t] = slices.Sorted(slices.Values(partitions))
		}
		id, name := c.generation, m.name
		g.Generation = &group.Generation{
			ID: id, Member: name, Assignments: assignments, Start: g.start,
			Commit: func(offsets map[string]map[int]kafkaconn.Commit) error { return m.commit(id, name, offsets) },
		}
		said = append(said, fmt.Sprintf("process %d has %v", m.from.id, assignments))
	}
	w.tellf("generation %d: %s", c.generation, strings.Join(said, ", "))
}

// end notifies all functions that the generation is over.
func (g *generation) end() {
	g.ending.end()
	g.count(0)
}

// count records that functions have started or returned.
func (g *generation) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running += n
	if g.Err() != nil && g.running == 0 && !g.isOver {
		g.isOver = true
		close(g.over)
	}
}

// start runs a function of the generation. The generation ends when it returns.
func (g *generation) start(run func(context.Context)) {
	counted := 1
	if g.Err() != nil {
		counted = 0
	}
	g.count(counted)
	go func() {
		run(g.ending)
		g.end()
		g.count(-counted)
	}()
}

// commit stores offsets if the coordinator still knows the generation.
func (m *member) commit(generation int32, name string, offsets map[string]map[int]kafkaconn.Commit) error {
	all := map[int]int64{}
	trails := map[int]string{}
	for topic, some := range offsets {
		for n, c := range some {
			p := m.w.kafka.partition(topic, int32(n)).id
			all[p], trails[p] = c.Offset, c.Metadata
		}
	}
	c := &call{from: m.from, server: ofKafka, kind: "commit", writes: true, what: "commit " + positions(all)}
	c.do = func() (any, error) {
		g := &m.w.group
		if !m.in || m.name != name || g.generation != generation {
			return nil, kafka.IllegalGeneration
		}
		for p, o := range all {
			m.w.commits(m.from, p, o, trails[p])
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := m.w.park(ctx, c)
	return err
}
