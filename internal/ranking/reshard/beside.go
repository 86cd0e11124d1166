package reshard

// The state next to the scores of the copy's shards. It is merged from the old shards whose members the new
// shard gets, so that it claims no more than each of them.

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

// finish writes the state next to the scores, the schema last, and compares it. It then checks that the old
// shards are unchanged, so that the copy equals them at the switch.
func (c *copier) finish(ctx context.Context) error {
	dropped, err := hashes(ctx, c.from, ranking.Keys.Dropped)
	if err != nil {
		return err
	}
	settled, err := hashes(ctx, c.from, ranking.Keys.Borders)
	if err != nil {
		return err
	}
	borders := map[string]string{} // the same on all shards
	for _, some := range slices.Backward(settled) {
		maps.Copy(borders, some)
	}
	final, err := hashes(ctx, c.from, ranking.Keys.Final)
	if err != nil {
		return err
	}
	banned := c.bannedOfCopy()
	want := make([]ledger.State, len(c.to))
	for i, s := range c.to {
		want[i] = c.beside(i)
		if err := c.writeBeside(ctx, s, &want[i], c.droppedOf(i, dropped), borders, c.finalOf(i, final), banned[i]); err != nil {
			return err
		}
	}
	got, err := c.run.states(ctx, c.to)
	if err != nil {
		return err
	}
	for i := range want {
		if !maps.Equal(got[i].Ledger, want[i].Ledger) || !maps.Equal(got[i].Origins, want[i].Origins) || !maps.Equal(got[i].Since, want[i].Since) || !maps.Equal(got[i].Refills, want[i].Refills) || !maps.Equal(got[i].Rules, want[i].Rules) || got[i].Schema != c.schema {
			return ranking.Faultf("shard %d of the copy doesn't have the positions that were written there", i)
		}
	}
	copied, err := bannedOn(ctx, c.to)
	if err != nil {
		return err
	}
	for i := range banned {
		if !maps.Equal(copied[i], banned[i]) {
			return ranking.Faultf("shard %d of the copy doesn't have the bans that were written there", i)
		}
	}
	return c.stillHeld(ctx)
}

// bannedOn returns the bans on some shards. They do not change while the shards are held: ban.lua is
// refused, as apply.lua is. Its caller then finds that the members have moved, and repeats the ban on the
// new shards.
func bannedOn(ctx context.Context, shards []*ranking.Store) ([]map[string]string, error) {
	return hashes(ctx, shards, ranking.Keys.Banned)
}

// hashes reads a hash of each of some shards.
func hashes(ctx context.Context, shards []*ranking.Store, key func(ranking.Keys) string) ([]map[string]string, error) {
	all := make([]map[string]string, len(shards))
	for i, s := range shards {
		err := tries(ctx, func() (err error) { all[i], err = s.Hash(ctx, key(s.Keys()), key(s.Keys()), 0); return err })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// bannedOfCopy returns the bans of each shard of the copy; each ban goes to the shard of its member. A ban
// in progress stays in progress, and the process that finds it there completes it.
func (c *copier) bannedOfCopy() []map[string]string {
	all := make([]map[string]string, len(c.to))
	for i := range all {
		all[i] = map[string]string{}
	}
	for _, banned := range c.banned {
		for field, state := range banned {
			if _, member, ok := strings.Cut(field, ":"); ok {
				to := all[c.To.Of(xxhash.Sum64String(member))]
				to[field], to["version"] = state, "copied "+c.lease.token
			}
		}
	}
	return all
}

// stillHeld checks that the old shards have not changed since they were held.
func (c *copier) stillHeld(ctx context.Context) error {
	if err := tries(ctx, func() error { return c.lease.prolong(ctx) }); err != nil {
		return err
	}
	now, err := c.run.states(ctx, c.from)
	if err != nil {
		return err
	}
	banned, err := bannedOn(ctx, c.from)
	if err != nil {
		return err
	}
	for i := range now {
		if !maps.Equal(now[i].Ledger, c.states[i].Ledger) || now[i].Schema != c.states[i].Schema || now[i].Windows != c.states[i].Windows || !maps.Equal(banned[i], c.banned[i]) {
			return ranking.Faultf("shard %d has changed while it was held: Redis has gone back, or something else writes there", i)
		}
	}
	return nil
}

// beside returns the state next to the scores of a shard of the copy.
func (c *copier) beside(shard int) ledger.State {
	st := ledger.State{Ledger: c.states[0].Ledger, Origins: map[string]string{}, Since: map[string]int64{}, Refills: map[string]int64{}, Rules: map[string]string{}} // they are level
	for i := range c.states {
		maps.Copy(st.Rules, c.states[i].Rules)
	}
	for _, i := range c.View.Shards.Overlapping(shard, c.To) {
		for field, origin := range c.states[i].Origins {
			st.Origins[field] = laterOrigin(st.Origins[field], origin)
		}
		for key, ms := range c.states[i].Since {
			st.Since[key] = max(st.Since[key], ms)
		}
		for field, refill := range c.states[i].Refills {
			st.Refills[field] = max(st.Refills[field], refill)
		}
	}
	return st
}

// droppedOf returns the windows that a shard of the copy must not open again, merged from its old shards.
func (c *copier) droppedOf(shard int, dropped []map[string]string) map[string]string {
	all := map[string]string{}
	for _, i := range c.View.Shards.Overlapping(shard, c.To) {
		for name, until := range dropped[i] {
			all[name] = laterTime(all[name], until)
		}
	}
	return all
}

// finalOf returns the seal records of a shard of the copy, merged from its old shards; of two different
// records the later is kept. If a window was final on some shards and is open in the copy, its record says
// that unknown events are missing from it.
func (c *copier) finalOf(shard int, final []map[string]string) map[string]string {
	all := map[string]string{}
	for _, i := range c.View.Shards.Overlapping(shard, c.To) {
		for name, text := range final[i] {
			if c.listings[name].opened {
				if r, err := ranking.ParseSealRecord(text); err == nil && r.Reopened.IsZero() {
					r.Passed = append(r.Passed, ranking.Unsaid(c.states[i].Now))
					text = r.Text()
				}
			}
			all[name] = laterSeal(all[name], text)
		}
	}
	return all
}

// valuesAtOnce is the number of hash values that one call writes.
const valuesAtOnce = 2000

// writeBeside writes the state: windows that are over and have no members, dropped windows, borders, seal
// records, bans, origins, rules and refills, and last the positions and the schema.
func (c *copier) writeBeside(ctx context.Context, s *ranking.Store, st *ledger.State, dropped, borders, final, banned map[string]string) error {
	k := s.Keys()
	over, refills, origins := map[string]string{}, map[string]string{}, maps.Clone(st.Origins)
	for key, ms := range st.Since {
		origins[ranking.SinceField(key)] = strconv.FormatInt(ms, 10)
	}
	for name, l := range c.listings {
		if l.over && l.Final == 0 { // these are listed already
			over[name] = l.Text()
		}
	}
	for field, refill := range st.Refills {
		refills["refill:"+field] = strconv.FormatInt(refill, 10)
	}
	for _, h := range []struct {
		key    string
		fields map[string]string
	}{{k.Windows(), over}, {k.Dropped(), dropped}, {k.Borders(), borders}, {k.Final(), final}, {k.Banned(), banned}, {k.Origin(), origins}, {k.Rules(), st.Rules}, {k.Workers(), refills}, {k.Ledger(), st.Ledger}} {
		var values []any
		for _, name := range slices.Sorted(maps.Keys(h.fields)) {
			values = append(values, name, h.fields[name])
		}
		for some := range slices.Chunk(values, valuesAtOnce) {
			if err := c.pasteOne(ctx, s, h.key, "hash", some); err != nil {
				return err
			}
		}
	}
	return c.pasteOne(ctx, s, k.Schema(), "text", []any{c.schema})
}

func (c *copier) pasteOne(ctx context.Context, s *ranking.Store, key, kind string, values []any) error {
	args := append([]any{c.lease.text, copyLives.Milliseconds(), kind, len(values)}, values...)
	return c.pasted(ctx, []ranking.ScriptCall{{Store: s, Script: lua.Load, Keys: []string{s.Keys().Copy(), key}, Args: args}})
}
