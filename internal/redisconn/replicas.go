package redisconn

// Reads from replicas. Of each master one server is read, and it stays the same as long as that is
// good: so what a process shows doesn't go back and forth between replicas.
//
//	a second has passed ─▶ find masters and their replicas ─▶ ask each how far it is ─▶ choose
//	or a call has failed     (settings, Sentinels, cluster)      (TIME, INFO replication)
//
// Chosen is, of each master, the first of these that there is:
//
//  1. a replica whose link is up and whose data is no older than the most that is allowed: of
//     several one by this process's lot, so that many processes share them;
//  2. the master;
//  3. the replica that is least behind: the master is away, and old is better than nothing.

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReplicasConfig is what a Replicas is made of.
type ReplicasConfig struct {
	Settings

	// Replicas, host:port, are those of a single server. Sentinels and clusters know theirs.
	Replicas []string
	// MaxAge is how old what a replica holds may be while its master answers.
	MaxAge time.Duration
	// Chosen is called with every choice that is another than before; nil is nobody.
	Chosen func(Choice)
}

// Choice is which server is read of a master and those that follow it.
type Choice struct {
	Server  string
	Replica bool
	Master  string
	Age     time.Duration // of what a replica holds, when that was last looked at
	Why     string        // no replica is read, or an old one; empty where all is well

	slots []SlotRange // nil: all
	err   error       // what became of asking the server
}

// Replicas read from replicas. It is safe for concurrent use.
type Replicas struct {
	config ReplicasConfig
	lot    maphash.Seed // this process's
	client *redis.ClusterClient
	end    context.CancelFunc
	wake   chan struct{} // has room for one
	looked chan struct{} // closed after the first look
	ended  chan struct{} // closed after the last

	// Of the looks, which are one after another.
	groups    []group
	servers   map[string]*redis.Client // that are asked, by address
	sentinels []*redis.SentinelClient

	mu      sync.Mutex // guards what follows
	choices []Choice
	err     error // why there are none
	streams map[string]*moments
}

const (
	lookEvery = time.Second
	// askedWithin is how long a server may take to say how far it is: a call may wait longer.
	askedWithin = time.Second
)

// NewReplicas begins to look for replicas. Close ends it.
func NewReplicas(c ReplicasConfig) *Replicas {
	ctx, end := context.WithCancel(context.Background())
	r := &Replicas{
		config: c, lot: maphash.MakeSeed(), end: end, servers: map[string]*redis.Client{}, streams: map[string]*moments{},
		wake: make(chan struct{}, 1), looked: make(chan struct{}), ended: make(chan struct{}),
	}
	s := &r.config.Settings
	s.ReadsOnly, s.anyRole, s.calls = true, true, newCalls(s.Timeout)
	o := s.options().Cluster()
	o.DisableRoutingPolicies = true
	o.ClusterStateReloadInterval = lookEvery
	// For go-redis there are as many masters as servers are read, whatever kind Redis is of.
	o.ClusterSlots = r.slots
	r.client = redis.NewClusterClient(o)
	r.client.OnNewNode(func(node *redis.Client) {
		s.hook(node)
		node.AddHook(noticesFailures{r})
	})
	go r.run(ctx)
	return r
}

// Client is a client of the servers that are chosen.
func (r *Replicas) Client() redis.UniversalClient { return r.client }

// Close closes all connections: no call is under way any more.
func (r *Replicas) Close() error {
	r.end()
	<-r.ended
	err := r.client.Close()
	for _, c := range r.servers {
		err = errors.Join(err, c.Close())
	}
	for _, c := range r.sentinels {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Choices are the servers that are read by now.
func (r *Replicas) Choices() []Choice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.choices)
}

// Err is why a server that is read didn't say how far it is, or why there is none.
func (r *Replicas) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.choices {
		if c.err != nil {
			return NameRight(c.err, "", "")
		}
	}
	return r.err
}

// AsOf is as of when what was read is true, by how far its server had come. The error is an
// *UndatedError.
func (r *Replicas) AsOf(p Replication) (AsOf, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stream := r.streams[p.Stream]; stream != nil {
		if !p.Replica {
			return AsOf{}, nil
		}
		if m, ok := stream.before(p.Offset); ok {
			return AsOf{Replica: true, At: m.at, Age: time.Since(m.asked)}, nil
		}
	}
	r.lookSoon()
	return AsOf{}, &UndatedError{p}
}

// lookSoon has the servers looked at before the next second.
func (r *Replicas) lookSoon() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// slots are the choices as go-redis takes them.
func (r *Replicas) slots(ctx context.Context) ([]redis.ClusterSlot, error) {
	select {
	case <-r.looked:
	case <-r.ended:
		return nil, redis.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.choices) == 0 {
		return nil, r.err
	}
	var all []redis.ClusterSlot
	for _, c := range r.choices {
		ranges := c.slots
		if ranges == nil {
			ranges = []SlotRange{{0, slots - 1}}
		}
		for _, of := range ranges {
			all = append(all, redis.ClusterSlot{Start: of.First, End: of.Last, Nodes: []redis.ClusterNode{{Addr: c.Server}}})
		}
	}
	return all, nil
}

// run looks until the context ends.
func (r *Replicas) run(ctx context.Context) {
	defer close(r.ended)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for first := true; ctx.Err() == nil; first = false {
		changed := r.look(ctx)
		if first {
			close(r.looked)
		}
		if changed {
			r.client.ReloadState(ctx)
		}
		select {
		case <-tick.C:
		case <-r.wake:
			// Many calls fail at once, and each look is a call to every server.
			select {
			case <-time.After(lookEvery / 10):
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}
}

// look asks all servers how far they are, and chooses. It reports whether a choice has changed.
func (r *Replicas) look(ctx context.Context) (changed bool) {
	groups, err := r.find(ctx)
	if err == nil {
		r.groups = groups
	}
	if len(r.groups) == 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
		return false
	}
	var masters, others []string
	for _, g := range r.groups {
		masters, others = append(masters, g.master), append(others, g.replicas...)
	}
	// Masters first: a replica that is hardly behind has what its master had a moment ago.
	r.forget(slices.Concat(masters, others, r.config.Addresses))
	answers := r.ask(ctx, masters)
	r.learn(answers)
	for address, a := range r.ask(ctx, others) {
		answers[address] = a
	}
	if ctx.Err() != nil {
		return false // they weren't let answer
	}
	var choices []Choice
	for _, g := range r.groups {
		choices = append(choices, r.choose(&g, answers))
	}
	return r.chose(choices)
}

// forget closes the connections to servers that aren't there any more.
func (r *Replicas) forget(but []string) {
	for address, c := range r.servers {
		if !slices.Contains(but, address) {
			delete(r.servers, address)
			_ = c.Close() // nothing is under way
		}
	}
}

// chose notes the choices, and calls for those that are others than before.
func (r *Replicas) chose(choices []Choice) (changed bool) {
	r.mu.Lock()
	before := r.choices
	r.choices, r.err = choices, nil
	r.mu.Unlock()
	for _, c := range choices {
		if slices.ContainsFunc(before, func(b Choice) bool {
			return b.Server == c.Server && b.Replica == c.Replica && b.Master == c.Master && slices.Equal(b.slots, c.slots)
		}) {
			continue
		}
		changed = true
		if r.config.Chosen != nil {
			r.config.Chosen(c)
		}
	}
	return changed || len(before) != len(choices)
}

// answered is what a server said of itself.
type answered struct {
	Replication

	linked bool // a replica is connected to its master, and has all of a copy of it
	at     time.Time
	asked  time.Time
	err    error
}

// ask asks servers how far they are, all at once.
func (r *Replicas) ask(ctx context.Context, addresses []string) map[string]*answered {
	all := map[string]*answered{}
	var asking sync.WaitGroup
	for _, address := range addresses {
		if all[address] != nil {
			continue
		}
		a, c := new(answered), r.server(address)
		all[address] = a
		asking.Go(func() { a.err = a.by(ctx, c) })
	}
	asking.Wait()
	return all
}

func (a *answered) by(ctx context.Context, c *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	a.asked = time.Now()
	pipe := c.Pipeline()
	clock, text := pipe.Time(ctx), pipe.Info(ctx, "replication")
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	a.at = clock.Val()
	fields := infoFields(text.Val())
	a.linked = fields["master_link_status"] == "up"
	var err error
	a.Replication, err = replicationOf(fields)
	return err
}

// learn notes how far masters were.
func (r *Replicas) learn(answers map[string]*answered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range answers {
		if a.err != nil || a.Replica {
			continue
		}
		if r.streams[a.Stream] == nil {
			r.streams[a.Stream] = new(moments)
		}
		r.streams[a.Stream].add(moment{a.Offset, a.at, a.asked})
	}
	for name, stream := range r.streams { // what a master that was followed by another has written
		if last := (*stream)[len(*stream)-1]; time.Since(last.asked) > forgetAfter {
			delete(r.streams, name)
		}
	}
}

// forgetAfter is after what time nobody looks at a replica of a master any more that is gone.
const forgetAfter = 24 * time.Hour

// choose is the choice of one master and those that follow it.
func (r *Replicas) choose(g *group, answers map[string]*answered) Choice {
	c := Choice{Server: g.master, Master: g.master, slots: g.slots, err: answers[g.master].err}
	var why []string
	best, least := uint64(0), Choice{}
	for _, address := range g.replicas {
		a := answers[address]
		age, fault := r.judge(a)
		if fault == "" {
			if lot := maphash.String(r.lot, address); c.Server == g.master || lot > best {
				best, c.Server, c.Replica, c.Age, c.err = lot, address, true, age, nil
			}
			continue
		}
		why = append(why, fmt.Sprintf("%s %s", address, fault))
		if age > 0 && (!least.Replica || age < least.Age) {
			least = Choice{Server: address, Replica: true, Master: g.master, Age: age, slots: g.slots}
		}
	}
	if c.Replica {
		return c
	}
	if len(g.replicas) == 0 {
		why = []string{"it has no replica"}
	}
	if master := answers[g.master]; least.Replica && (master.err != nil || master.Replica) {
		c = least
		why = append(why, fmt.Sprintf("%s, the master, %v", g.master, mastersFault(master.err)))
	}
	c.Why = strings.Join(why, "; ")
	return c
}

// judge is how old what a replica holds is, 0 where that isn't known, and why it isn't read, or
// nothing.
func (r *Replicas) judge(a *answered) (age time.Duration, fault string) {
	if a.err != nil {
		return 0, fmt.Sprintf("doesn't answer: %v", NameRight(a.err, "", ""))
	}
	if !a.Replica {
		return 0, "is a master"
	}
	r.mu.Lock()
	if stream := r.streams[a.Stream]; stream != nil {
		if m, ok := stream.before(a.Offset); ok {
			age = max(1, time.Since(m.asked))
		}
	}
	r.mu.Unlock()
	switch {
	case age == 0:
		return 0, "can't be dated: it doesn't follow the master, or isn't as far yet as that was when it was first seen"
	case !a.linked:
		return age, "has lost the link to its master"
	case age > r.config.MaxAge:
		return age, fmt.Sprintf("is %v behind", age.Round(time.Second))
	}
	return age, ""
}

func mastersFault(err error) string {
	if err == nil {
		return "has become a replica"
	}
	return "doesn't answer: " + err.Error()
}

// noticesFailures has the servers looked at where a call failed that another one might answer. It
// is a redis.Hook of a server's client.
type noticesFailures struct{ of *Replicas }

// DialHook leaves dialling as it is.
func (noticesFailures) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook looks at the error of a call.
func (n noticesFailures) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		n.see(err)
		return err
	}
}

// ProcessPipelineHook looks at the error of a pipeline.
func (n noticesFailures) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		n.see(err)
		return err
	}
}

func (n noticesFailures) see(err error) {
	reply, answered := errors.AsType[redis.Error](err)
	if Unreachable(err) || answered && slices.ContainsFunc([]string{"LOADING", "MASTERDOWN", "MOVED"}, func(code string) bool {
		return startsWith(cause(reply.Error()), code)
	}) {
		n.of.lookSoon()
	}
}
