package simulate

// This file connects processes to the simulated Redis. They use the real store and go-redis, over
// connections whose commands wait for the driver like every other call.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/simulate/redissim"
)

const (
	prefix       = "lb"
	redisTimeout = 2 * time.Second
)

// standings is a store with the classification of its errors, as in the product.
type standings struct{ *ranking.Store }

// Classify returns the verdict on an error of Redis.
func (standings) Classify(err error) ledger.Verdict { return ranking.Classify(err) }

// dial creates the product's own clients, one per master; connected does what the consumer does on a new
// connection. Without an answer, calls made at the same moment must time out at different ones, so each
// client and each shard has a timeout of its own.
func (p *process) dial() {
	for _, m := range p.w.masters {
		p.clients = append(p.clients, redisconn.NewClient(redisconn.Settings{
			Addresses: []string{fmt.Sprintf("192.0.2.%d:6379", 2+m.number)}, Timeout: redisTimeout + time.Duration(m.number)*1117*time.Microsecond,
			Network: m.redis.Dialer(p.name()), Connected: p.connected,
		}))
	}
}

func (p *process) connected(ctx context.Context, conn *redis.Conn) error {
	if p.consumer != nil {
		p.consumer.Reconnected()
	}
	if p.inLine.Load() {
		p.keeper.Wake()
	}
	return redisconn.CheckEviction(ctx, conn, false)
}

// store returns the product's store of a shard.
func (p *process) store(sh *shard) *ranking.Store {
	s, all := p.w.setup, map[periods.Period]ranking.Period{}
	for _, name := range s.periodsOf(p.has) {
		rule := p.rule(name)
		layout, err := codec.New(codec.Kind(s.Layout), rule.Length(), s.MaxPoints)
		if err != nil {
			panic(err) // the plan is wrong
		}
		all[periods.Period(name)] = ranking.Period{Rule: rule, Layout: layout, Retention: retention[name]}
	}
	return ranking.New(ranking.Config{
		Client: p.clients[sh.on.number], Prefix: prefix, Shard: sh.number, Shards: s.shards(), Cluster: "simulated", Periods: all, Calendar: p.calendar(), Lists: s.listsOf(p.has),
		Timeout: redisTimeout - time.Duration(sh.number)*1371*time.Microsecond, MaxWindows: s.MaxWindows, Boards: p.w.ruledBoards(),
	})
}

// standings returns the stores of all shards, as in the product.
func (p *process) standings() (all []shards.Standings) {
	for _, sh := range p.w.shards {
		if s := (standings{p.store(sh)}); p.keeper != nil {
			all = append(all, alignedStandings{s, p, sh.number})
		} else {
			all = append(all, s)
		}
	}
	return all
}

// hook is called for every command to a master, on its connection's goroutine.
func (w *world) hook(m *master, command *redissim.Command) redissim.Answer {
	p := w.named(command.From)
	c := &call{from: p, server: ofRedis, shard: m.shards[0]}
	if p.id >= firstReader {
		if command.Name() != "read.lua" {
			return redissim.Answer{Reply: command.Execute(redissim.Fault{}).Reply}
		}
		c.kind, c.what = "read", "read "+keys(command.Args)[5]
		return w.parked(c, command)
	}
	if name := command.Name(); p.id >= firstRebuild && !slices.Contains([]string{"HELLO", "CLIENT", "INFO", "CONFIG", "EVALSHA"}, name) {
		if isOneOfMany(name) && !w.parks(p) {
			return redissim.Answer{Reply: command.Execute(redissim.Fault{}).Reply}
		}
		if name == "unseal.lua" {
			c.shard = m.has(keys(command.Args)[0])
		}
		c.command = command
		c.ofRebuild(command)
		return w.parked(c, command)
	}
	switch name := command.Name(); name {
	case "apply.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.writes = "apply", true
		field, expected, next := piece(command.Args)
		c.what = fmt.Sprintf("apply %s%s %s → %s", strings.TrimPrefix(field, topic+"/"), c.shard.named(), expected, next)
		c.width = len(command.Args) / 3
	case "start.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "begin", "write where partitions start"+c.shard.named(), true
	case "extend.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "extend", "add the periods that Redis lacks"+c.shard.named(), true
	case "state.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what = "state", "read the ledger"+c.shard.named()
	case "HGET":
		c.shard = m.has(command.Args[1])
		c.kind, c.what = "position", "look at the ledger of "+strings.TrimPrefix(command.Args[2], topic+"/")+c.shard.named()
	case "ban.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "ban", aboutBan(command.Args)+c.shard.named(), true
	case "seal.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "seal", aboutSeal(command.Args)+c.shard.named(), true
	case "HSCAN", "HMGET":
		if !p.w.setup.Seal {
			return w.unparked(p, command)
		}
		c.shard = m.has(command.Args[1])
		c.kind, c.what = "due", name+" of "+strings.TrimPrefix(command.Args[1], c.shard.tag)+c.shard.named()
	case "settle.lua":
		if !p.w.setup.Zones {
			return w.unparked(p, command)
		}
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "settle", "settle "+arguments(command.Args)[1]+c.shard.named(), arguments(command.Args)[0] != ""
	case "forget.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "forget", "forget rules"+c.shard.named(), true
	case "report.lua":
		c.shard = m.has(keys(command.Args)[0])
		c.kind, c.what, c.writes = "report", "report "+arguments(command.Args)[0]+c.shard.named(), true
	default: // greetings, and scripts that must be loaded first
		return w.unparked(p, command)
	}
	return w.parked(c, command)
}

// unparked executes a command at once.
func (w *world) unparked(p *process, command *redissim.Command) redissim.Answer {
	if p.isDead() {
		return redissim.Answer{Cut: true}
	}
	return redissim.Answer{Reply: command.Execute(redissim.Fault{}).Reply}
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

// keys returns the keys of a script call.
func keys(args []string) []string {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		panic(err)
	}
	return args[3 : 3+n]
}

// windowKeys returns the keys of the windows in a call of apply.lua: for each its sorted set and its hidden
// set.
func windowKeys(args []string) []string {
	all := keys(args)
	return all[7 : len(all)-len(strings.Fields(arguments(args)[6]))] // the keys of rules and names come last
}

// arguments returns the arguments of a script call, after its keys.
func arguments(args []string) []string { return args[3+len(keys(args)):] }

func piece(args []string) (field, expected, next string) {
	a := arguments(args)
	return a[0], a[1], a[2]
}
