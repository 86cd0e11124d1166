package simulate

// The simulated Redis, and what each process sends there: the real store, by go-redis,
// over connections whose commands park like every other call.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/simulate/redissim"
)

const (
	prefix       = "lb"
	redisTimeout = 2 * time.Second
)

// Keys of the ledger's side, by their names in the design.
const (
	ledgerKey  = prefix + ":{0}:ledger"
	schemaKey  = prefix + ":{0}:schema"
	windowsKey = prefix + ":{0}:windows"
	holdKey    = prefix + ":{0}:hold"
	boardKeys  = prefix + ":{0}:"
)

// standings are a store with what its errors mean, as the process wires it.
type standings struct{ *ranking.Store }

// Meaning says what an error of Redis asks for.
func (standings) Meaning(err error) ledger.Verdict { return ranking.Meaning(err) }

// dial makes the product's own client, and connected is what the consumer's does.
func (p *process) dial() redis.UniversalClient {
	return ranking.NewClient(ranking.Dial{
		Addresses: []string{"192.0.2.2:6379"}, Timeout: redisTimeout, Network: p.w.redis.Dialer(p.name()), Connected: p.connected,
	})
}

func (p *process) connected(ctx context.Context, conn *redis.Conn) error {
	if p.consumer != nil {
		p.consumer.Reconnected()
	}
	return ranking.TryEviction(ctx, conn, false)
}

func (s *setup) store(client redis.UniversalClient, calendar periods.Calendar) *ranking.Store {
	all := map[periods.Period]ranking.Period{}
	for _, name := range s.Periods {
		layout, err := codec.New(codec.Kind(s.Layout), periods.Period(name).Length(), s.MaxPoints)
		if err != nil {
			panic(err) // by the plan, which is wrong then
		}
		all[periods.Period(name)] = ranking.Period{Layout: layout, Retention: retention[name]}
	}
	return ranking.New(ranking.Config{Client: client, Prefix: prefix, Cluster: "simulated", Periods: all, Calendar: calendar, Timeout: redisTimeout, MaxWindows: s.MaxWindows})
}

// hook is called with every command, on its connection's goroutine.
func (w *world) hook(command *redissim.Command) redissim.Answer {
	p := w.named(command.From)
	c := &call{from: p, server: ofRedis}
	if p.id >= firstReader {
		if command.Name() != "read.lua" {
			return redissim.Answer{Reply: command.Execute(redissim.Fault{}).Reply}
		}
		c.kind, c.what = "read", "read "+keys(command.Args)[5]
		return w.parked(c, command)
	}
	if name := command.Name(); p.id >= firstRebuild && !slices.Contains([]string{"HELLO", "CLIENT", "INFO", "CONFIG", "EVALSHA"}, name) {
		c.ofRebuild(command)
		return w.parked(c, command)
	}
	switch name := command.Name(); name {
	case "apply.lua":
		c.kind, c.writes = "apply", true
		field, expected, next := piece(command.Args)
		c.what = fmt.Sprintf("apply %s %s → %s", strings.TrimPrefix(field, topic+"/"), expected, next)
		c.width = len(command.Args) / 3
	case "start.lua":
		c.kind, c.what, c.writes = "begin", "write where partitions start", true
	case "state.lua":
		c.kind, c.what = "state", "read the ledger"
	case "HGET":
		c.kind, c.what = "position", "look at the ledger of "+strings.TrimPrefix(command.Args[2], topic+"/")
	case "report.lua":
		c.kind, c.what, c.writes = "report", "report "+arguments(command.Args)[0], true
	default: // greetings, and scripts that have to be sent first
		if p.isDead() {
			return redissim.Answer{Cut: true}
		}
		return redissim.Answer{Reply: command.Execute(redissim.Fault{}).Reply}
	}
	return w.parked(c, command)
}

func (w *world) parked(c *call, command *redissim.Command) redissim.Answer {
	c.command = command
	value, err := w.park(context.Background(), c)
	if err != nil {
		return redissim.Answer{Cut: true}
	}
	a, ok := value.(redissim.Answer)
	if !ok {
		panic(fmt.Sprintf("simulate: an answer of Redis of type %T", value))
	}
	return a
}

// keys are those that a script is called with.
func keys(args []string) []string {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		panic(err)
	}
	return args[3 : 3+n]
}

// arguments are those of a script, behind its keys.
func arguments(args []string) []string { return args[3+len(keys(args)):] }

func piece(args []string) (field, expected, next string) {
	a := arguments(args)
	return a[0], a[1], a[2]
}

// --- what is in it -------------------------------------------------------------------

// history is what stands in Redis, with what the simulation knows of how it came there:
// it goes back with it.
type history struct {
	redis  redissim.Snapshot
	starts map[int]int64
	looked map[int]int64
	lost   []gone
	at     time.Time
}

// gone are events that a skip went over: of [from, to) those whose member's hash isn't
// below the sweep's.
type gone struct {
	partition int
	from, to  int64
	hash      uint64
	looked    int64 // Redis's clock then, ms
}

func (w *world) snapshot() history {
	return history{w.redis.Snapshot(), maps.Clone(w.starts), maps.Clone(w.looked), slices.Clone(w.lost), time.Now()}
}

func (w *world) restore(h history) {
	w.redis.Restore(h.redis)
	w.starts, w.looked, w.lost = maps.Clone(h.starts), maps.Clone(h.looked), slices.Clone(h.lost)
	w.since = w.origins()
	w.whole()
}

// whole notes that nothing of Redis is torn or evicted any more.
func (w *world) whole() {
	w.damaged = false
	clear(w.torn)
	clear(w.evicted)
}

func (w *world) hash(key string) map[string]string {
	all := map[string]string{}
	reply, _ := w.redis.Do("HGETALL", key).([]any)
	for i := 0; i+1 < len(reply); i += 2 {
		all[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
	}
	return all
}

func (w *world) has(key string) bool { return w.redis.Do("EXISTS", key) == int64(1) }

// ledger is what stands in Redis, by partition.
func (w *world) ledger() map[int]string {
	all := map[int]string{}
	for field, text := range w.hash(ledgerKey) {
		p, err := strconv.Atoi(strings.TrimPrefix(field, topic+"/"))
		if err != nil {
			panic(err)
		}
		all[p] = text
	}
	return all
}

// executed is called after every command that was carried out, with what it answered.
func (w *world) executed(c *call, r redissim.Result) {
	if c.kind == "swap" {
		w.swapped(r)
		return
	}
	if c.kind == "read" {
		w.readers[c.from.id-firstReader].note(keys(c.command.Args)[5])
		return
	}
	if c.kind != "apply" && c.kind != "begin" {
		return
	}
	if r.Torn() && c.kind == "begin" {
		return // what it wrote is written again
	}
	if r.Torn() {
		// By what the ledger says: a script that left no mark has damaged nothing that
		// anybody would know of.
		w.tears()
		w.tellf("the ledger is %s now", positions(w.ledger()))
		return
	}
	list, _ := r.Reply.([]any)
	if len(list) == 0 {
		return
	}
	w.count(fmt.Sprint(c.kind, " answers ", list[0]))
	if list[0] != "applied" {
		return
	}
	if c.kind == "begin" {
		w.begun(arguments(c.command.Args))
	} else {
		w.applied(c)
	}
	w.keep()
}

// tears notes which partitions' ledgers are torn.
func (w *world) tears() {
	for field, position := range w.hash(ledgerKey) {
		if strings.HasPrefix(position, "torn:") {
			w.damaged, w.torn[field] = true, true
		}
	}
}

// applied notes a piece that is in.
func (w *world) applied(c *call) {
	field, _, next := piece(c.command.Args)
	w.counted = true
	w.mended(field, c.command.Args)
	w.goesOn(c)
	if !strings.Contains(next, "@") {
		w.reached(field, next)
	}
}

// mended holds that a piece didn't hide what is wrong with Redis: it neither counts on a
// torn ledger, nor begins a listed board anew that was evicted.
func (w *world) mended(field string, args []string) {
	if w.torn[field] {
		w.failf("a piece counts on the torn ledger of %s", field)
	}
	if w.evicted[windowsKey] {
		return // nothing says any more which boards there were
	}
	for _, key := range keys(args)[5:] {
		if w.evicted[key] && w.has(key) {
			w.failf("a piece begins %s anew, which was evicted", key)
		}
	}
}

// keep keeps a state that Redis may go back to.
func (w *world) keep() {
	if w.damaged {
		return
	}
	const most = 40
	if len(w.histories) == most {
		w.histories = slices.Delete(w.histories, 1, 2)
	}
	w.histories = append(w.histories, w.snapshot())
}

// reached notes how far a partition's ledger has ever stood.
func (w *world) reached(field, position string) {
	p, err := strconv.Atoi(strings.TrimPrefix(field, topic+"/"))
	if err != nil {
		panic(err)
	}
	at, err := strconv.ParseInt(position, 10, 64)
	if err != nil {
		w.failf("the ledger of %d stands at %q", p, position)
		return
	}
	w.furthest[p] = max(w.furthest[p], at)
}

// committedUpTo holds that nothing is committed before it counts.
func (w *world) committedUpTo(partition int, offset int64) {
	if offset > w.furthest[partition] {
		w.failf("offset %d of partition %d is committed, and its ledger never stood past %d", offset, partition, w.furthest[partition])
	}
}

// begun holds a start that was written against what the configuration asks for.
func (w *world) begun(args []string) {
	var said []string
	var first []int
	for i := 2; i+4 < len(args); i += 5 {
		field, found, position := args[i], args[i+1], args[i+2]
		p, err := strconv.Atoi(strings.TrimPrefix(field, topic+"/"))
		if err != nil {
			panic(err)
		}
		from, _, _ := parse(position)
		said = append(said, fmt.Sprintf("%d at %s", p, position))
		w.furthest[p] = max(w.furthest[p], from)
		if found != "" && found != "beside others" {
			w.skips(p, found, position)
			continue
		}
		if found != "" && from > 0 && (!w.setup.Continue || from > w.kafka.partitions[p].start) {
			w.failf("partition %d was added, and begins at offset %d (on_gap: continue is %v)", p, from, w.setup.Continue)
		}
		first = append(first, p)
		w.starts[p], w.looked[p] = from, w.now().UnixMilli()
	}
	w.tellf("starts are written: %s", strings.Join(said, ", "))
	alone := len(first) == len(w.hash(ledgerKey)) // nothing of the topic was there
	w.originsRise(!alone)
	w.checkWhole()
	if alone && len(first) < w.setup.Partitions {
		w.failf("the start of %d partitions was resolved, and the topic has %d or more: they would start at different times", len(first), w.setup.Partitions)
	}
	for _, p := range first {
		w.startsWell(p, w.starts[p], !alone)
	}
	switch {
	case !alone:
	case w.belated && !refills(args):
		// A first start that was on its way when Redis was lost: what it leaves out was left
		// out before, and its sender knew of nothing to fill again.
		w.known = nil
	default:
		w.refilled()
	}
}

// refills reports whether a start says up to where a lost Redis is filled again.
func refills(args []string) bool {
	for i := 2; i+4 < len(args); i += 5 {
		if args[i+4] != "" {
			return true
		}
	}
	return false
}

// skips notes what a partition goes over, from one position to another: of a sweep the
// members that it hadn't come to.
func (w *world) skips(partition int, found, position string) {
	from, to, hash := parse(found)
	start, _, at := parse(position)
	// Where gaps are gone over, a log's start only rises.
	if log := w.kafka.partitions[partition]; !w.setup.Continue || from >= log.start || start > log.start {
		w.failf("partition %d goes over a gap from %s to %s, and its log begins at offset %d (on_gap: continue is %v)", partition, found, position, log.start, w.setup.Continue)
		return
	}
	w.count("events are lost in a gap, as on_gap says")
	now := w.now().UnixMilli()
	w.lost = append(w.lost, gone{partition, from, min(max(to, from), start), hash, now})
	if start > to {
		w.lost = append(w.lost, gone{partition, to, start, 0, now})
	} else if start < to && at != hash {
		w.failf("partition %d goes over a gap from %s to %s: of another hash", partition, found, position)
	}
}

// parse reads a position: 480, or 120..480@hash.
func parse(position string) (from, to int64, hash uint64) {
	bounds, h, sweeping := strings.Cut(position, "@")
	first, last, _ := strings.Cut(bounds, "..")
	from, _ = strconv.ParseInt(first, 10, 64)
	to = from
	if sweeping {
		to, _ = strconv.ParseInt(last, 10, 64)
		hash, _ = strconv.ParseUint(h, 16, 64)
	}
	return from, to, hash
}

func hashOf(user string) uint64 { return fold.Hash([]byte(user)) }

// positions are a map's, sorted.
func positions[V any](all map[int]V) string {
	var said []string
	for _, p := range slices.Sorted(maps.Keys(all)) {
		said = append(said, fmt.Sprintf("%d: %v", p, all[p]))
	}
	if len(said) == 0 {
		return "empty"
	}
	return strings.Join(said, ", ")
}
