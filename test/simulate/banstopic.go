package simulate

// This file simulates the bans topic for its followers. The follower is the product's own. Its requests are
// answered at once, or as soon as there is a record, so they are not steps of the driver. The calls with
// which a process applies bans to Redis are steps.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

const bansTopic = "bans"

// bansLog is the topic. The world's lock guards it.
type bansLog struct {
	brokers

	grew  chan struct{} // closed when a record is added
	until time.Time     // the topic is unavailable until then
	of    int           // the process for which it is unavailable; 0: all
}

// append adds a record, and compacts earlier records with the same key: a new follower may see only the
// latest.
func (l *bansLog) append(w *world, key, value []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.partitions == nil {
		l.add(bansTopic)
		l.grew = make(chan struct{})
	}
	p := l.partitions[0]
	for i, b := range p.batches {
		if len(b.records) == 1 && bytes.Equal(b.records[0].key, key) {
			hole := &batch{base: b.base, last: b.last, maxTime: b.maxTime}
			hole.bytes = encode(hole, 0)
			p.batches[i] = hole
		}
	}
	p.send(&sending{records: []record{{time: w.now().UnixMilli(), key: key, value: value}}}, 0)
	close(l.grew)
	l.grew = make(chan struct{})
}

// goesAway makes the topic unavailable for a while, for one process or for all.
func (l *bansLog) goesAway(w *world, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.until, l.of = time.Now().Add(time.Duration(1+n%30)*time.Second), 0
	about := ""
	if alive := w.alive(); n>>5%2 == 0 && len(alive) > 0 {
		l.of = alive[n>>6%len(alive)].id
		about = fmt.Sprintf(", for process %d alone", l.of)
	}
	w.tellf("%s until %.1f s%s", bansAway, l.until.Sub(w.began).Seconds(), about)
}

// follows is a process's transport to the topic.
type follows struct{ *process }

// away returns the error if the topic is unavailable.
func (f *follows) away() error {
	l := &f.w.bans.topic
	switch {
	case f.dead:
		return errDead
	case f.cut, time.Now().Before(l.until) && (l.of == 0 || l.of == f.id):
		return errReset
	}
	return nil
}

// RoundTrip answers at once.
func (f *follows) RoundTrip(ctx context.Context, _ net.Addr, request kafka.Request) (kafka.Response, error) {
	if r, ok := request.(protocol.RawExchanger); ok {
		r.Required(versions)
		return r.RawExchange(&bansWire{follows: f, ctx: ctx})
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if err := f.away(); err != nil {
		return nil, err
	}
	switch r := request.(type) {
	case *metadata.Request:
		return f.w.bans.topic.metadata(r), nil
	case *listoffsets.Request:
		return f.w.bans.topic.listOffsets(r), nil
	default:
		panic(fmt.Sprintf("simulate: a request of type %T for bans", request))
	}
}

// bansWire is a connection: the client writes a fetch and reads its response.
type bansWire struct {
	*follows

	ctx      context.Context //nolint:containedctx // of the one call that it is for
	request  bytes.Buffer
	response *bytes.Reader
}

func (c *bansWire) Write(b []byte) (int, error) { return c.request.Write(b) }

func (c *bansWire) Read(b []byte) (int, error) {
	if c.response == nil {
		out, err := c.answer()
		if err != nil {
			return 0, err
		}
		c.response = bytes.NewReader(out)
	}
	return c.response.Read(b)
}

// heldBack is how long an empty fetch is held: a little less than the client waits.
const heldBack = 4 * time.Second

func (c *bansWire) answer() ([]byte, error) {
	_, version, correlation, _ := header(c.request.Bytes())
	q := readFetch(c.request.Bytes())
	at := q.Topics[0].Partitions[0].FetchOffset
	most := time.NewTimer(heldBack + time.Duration(c.id*7919+int(at)*104729)*time.Nanosecond)
	defer most.Stop()
	for waits := true; waits; {
		c.w.mu.Lock()
		grew, something := c.w.bans.topic.grew, at != c.w.bans.topic.partitions[0].end
		c.w.mu.Unlock()
		if something {
			break
		}
		select {
		case <-grew:
		case <-most.C:
			waits = false
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
	lag := c.w.setup.BansLag // each process hears of each record at another time
	time.Sleep(time.Duration(c.id*1_299_709+int(at)*15_485_863)%lag + time.Duration(c.id)*time.Microsecond)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if err := c.away(); err != nil {
		return nil, err
	}
	return framed(c.w.bans.topic.fetch(q), version, correlation), nil
}

// framed encodes a response for the wire.
func framed(a kmsg.Response, version int16, correlation int32) []byte {
	a.SetVersion(version)
	head := 8
	if a.IsFlexible() && a.Key() != int16(protocol.ApiVersions) {
		head++ // no tags
	}
	out := a.AppendTo(make([]byte, head, 256))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	binary.BigEndian.PutUint32(out[4:], uint32(correlation))
	return out
}

// keeping is the part of a process that applies the topic to Redis.
type keeping struct {
	follower *bans.Follower
	keeper   *bans.Keeper
	before   map[banned]*ban    // bans in force when the process started
	inLine   atomic.Bool        // whether Redis was in line once
	aligned  map[int]*alignedAt // by shard; the world's lock guards it
}

// alignedAt is the time at which a process last started to apply the bans after it had read a shard's
// ledger, with the bans that it knew to be in force then.
type alignedAt struct {
	at    time.Time
	known bans.State
}

// keeps gives a process a keeper, as the consumer has one.
func (p *process) keeps() {
	if !p.w.setup.Bans {
		return
	}
	log := zap.New(&logCore{p: p})
	client := &kafka.Client{Addr: kafka.TCP("192.0.2.1:9092"), Transport: &follows{p}, Timeout: callTimeout}
	p.follower = bans.NewFollower(client, bansTopic, log)
	hidden := hiddenStandings{}
	for _, sh := range p.w.shards {
		hidden = append(hidden, p.store(sh))
	}
	p.before = maps.Clone(p.w.bans.latest)
	p.keeper, p.aligned = bans.NewKeeper(p.follower, hidden, log), map[int]*alignedAt{}
}

// consumes runs the consumer. Before and next to it, it applies the bans and seals windows, as the product
// does.
func (p *process) consumes() {
	if !p.extends() {
		return
	}
	defer p.seals()()
	if p.keeper == nil {
		p.err = p.consumer.Run(p.ending)
		return
	}
	var beside sync.WaitGroup
	beside.Go(func() { p.follower.Run(p.ending) })
	if p.firstAligns() {
		p.inLine.Store(true)
		beside.Go(func() { p.keeper.Watch(p.ending) })
		p.err = p.consumer.Run(p.ending)
		p.end()
	}
	beside.Wait()
}

// firstAligns applies the bans, and reports whether that succeeded before the process ended.
func (p *process) firstAligns() bool {
	if p.follower.Ready(p.ending, 0) != nil {
		return false
	}
	p.startsKnowing()
	for p.keeper.Align(p.ending) != nil {
		select {
		case <-time.After(time.Second + time.Duration(p.id)*1371*time.Microsecond):
		case <-p.Done():
			return false
		}
	}
	return true
}

// startsKnowing checks that a starting process knows every ban that existed at its start. It runs
// concurrently with the driver.
func (p *process) startsKnowing() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	state := p.follower.State()
	for k, b := range p.before {
		if p.w.bans.latest[k] == b && state[bans.Key{Board: k.board, Member: k.member}] == nil {
			said := fmt.Sprintf("process %d starts and doesn't know that %q is banned", p.id, k.field())
			p.w.groundless.Store(&said)
		}
	}
}

// alignedStandings wraps a shard's standings so that the bans are applied after a worker has read where it
// continues, as in the consumer.
type alignedStandings struct {
	standings

	p     *process
	shard int
}

// State returns the ledger and the rest of the shard's state.
func (s alignedStandings) State(ctx context.Context) (ledger.State, error) {
	state, err := s.standings.State(ctx)
	if err != nil {
		return ledger.State{}, err
	}
	at := &alignedAt{at: time.Now(), known: maps.Clone(s.p.follower.State())}
	maps.DeleteFunc(at.known, func(_ bans.Key, r *bans.Record) bool { return !r.InForce(s.p.w.now()) })
	if err := s.p.keeper.Align(ctx); err != nil {
		return ledger.State{}, err
	}
	s.p.w.mu.Lock()
	s.p.aligned[s.shard] = at
	s.p.w.mu.Unlock()
	return state, err
}

// hiddenStandings implements the standings of all shards for the bans.
type hiddenStandings []*ranking.Store

// Ban hides or erases a member.
func (h hiddenStandings) Ban(ctx context.Context, b bans.Ban) error {
	return ranking.BanEach(ctx, h, ranking.Ban{Board: b.Board, Member: b.Member, Erased: b.Erased}, (*ranking.Store).Ban)
}

// Unban shows a member again.
func (h hiddenStandings) Unban(ctx context.Context, k bans.Key) error {
	return ranking.BanEach(ctx, h, ranking.Ban{Board: k.Board, Member: k.Member}, (*ranking.Store).Unban)
}

// Banned returns the bans that Redis holds.
func (h hiddenStandings) Banned(ctx context.Context) (all []bans.Ban, err error) {
	found, err := ranking.BannedEach(ctx, h)
	for _, b := range found {
		all = append(all, bans.Ban{Key: bans.Key{Board: b.Board, Member: b.Member}, Erased: b.Erased, Pending: b.Pending})
	}
	return all, err
}

// Now returns Redis's time.
func (h hiddenStandings) Now(ctx context.Context) (time.Time, error) { return h[0].Now(ctx) }
