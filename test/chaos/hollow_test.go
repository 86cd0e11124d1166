package chaos

// A run in which little happened shows little: it mustn't look like one that passed.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// many is how often a kind has to have been tried before the share that took effect says
// anything.
const many = 10

// hollow is what a run lacks whose difference from the oracle is to mean anything: events, repeats,
// standings, hidden ones, clocks that are apart, faults, and of each kind that was tried often as many that took effect as not.
func (r *Report) hollow() []string {
	var lacks []string
	if len(r.Modes) == 0 {
		lacks = append(lacks, "no mode was run")
	}
	for _, m := range r.Modes {
		if m.Events.InLog == 0 {
			lacks = append(lacks, m.Mode+": no event was in the log")
		}
		if m.Standings == 0 {
			lacks = append(lacks, m.Mode+": no standing was compared")
		}
		if m.Events.Repeats == 0 {
			lacks = append(lacks, m.Mode+": no event was a repeat")
		}
		if m.Hidden == 0 {
			lacks = append(lacks, m.Mode+": no banned member's standing was compared")
		}
		if m.Final == 0 {
			lacks = append(lacks, m.Mode+": no final window was compared with the archive")
		}
		if r.Consumer == builtHere && min(m.Clocks.Behind, m.Clocks.Ahead) < 1 {
			lacks = append(lacks, m.Mode+": no consumer's clock was behind, or none ahead")
		}
		if !slices.ContainsFunc(m.Faults, func(f FaultReport) bool { return f.TookEffect > 0 }) {
			lacks = append(lacks, m.Mode+": no fault took effect")
		}
	}
	for _, f := range r.merge() {
		if f.Tried >= many && 2*f.TookEffect < f.Tried {
			lacks = append(lacks, fmt.Sprintf("%s: of %d tries only %d took effect", f.Kind, f.Tried, f.TookEffect))
		}
	}
	return lacks
}

// full is a run that lacks nothing.
func full() *Report {
	return &Report{Consumer: builtHere, Modes: []ModeReport{{
		Mode: plain, Events: Events{InLog: 1, Repeats: 1}, Standings: 1, Hidden: 1, Final: 1, Clocks: Clocks{Behind: 60, Ahead: 60},
		Faults: []FaultReport{{Kind: rebuildEnds, Tried: many, TookEffect: many / 2}},
	}}}
}

func TestARunInWhichNothingHappenedFails(t *testing.T) {
	t.Parallel()
	if lacks := full().hollow(); len(lacks) > 0 {
		t.Errorf("a run with all of it lacks %q", lacks)
	}
	for name, c := range map[string]struct {
		change func(*Report)
		lacks  string
	}{
		"nothing at all":  {func(r *Report) { r.Modes = nil }, "no mode was run"},
		"an empty mode":   {func(r *Report) { r.Modes = append(r.Modes, ModeReport{Mode: rdb}) }, "rdb: no fault took effect"},
		"no events":       {func(r *Report) { r.Modes[0].Events = Events{Published: 9} }, "plain: no event was in the log"},
		"no standings":    {func(r *Report) { r.Modes[0].Standings = 0 }, "plain: no standing was compared"},
		"no repeats":      {func(r *Report) { r.Modes[0].Events.Repeats = 0 }, "plain: no event was a repeat"},
		"nobody hidden":   {func(r *Report) { r.Modes[0].Hidden = 0 }, "plain: no banned member's standing was compared"},
		"nothing final":   {func(r *Report) { r.Modes[0].Final = 0 }, "plain: no final window was compared with the archive"},
		"right clocks":    {func(r *Report) { r.Modes[0].Clocks.Behind = 0 }, "plain: no consumer's clock was behind, or none ahead"},
		"no faults":       {func(r *Report) { r.Modes[0].Faults = nil }, "plain: no fault took effect"},
		"faults in vain":  {func(r *Report) { r.Modes[0].Faults[0].TookEffect = 0 }, "plain: no fault took effect"},
		"a kind often so": {func(r *Report) { r.Modes[0].Faults[0].TookEffect-- }, "rebuild: to its end: of 10 tries only 4 took effect"},
		"a kind in two modes so": {func(r *Report) {
			r.Modes = append(r.Modes, full().Modes[0])
			r.Modes[1].Faults[0].TookEffect--
		}, "rebuild: to its end: of 20 tries only 9 took effect"},
	} {
		r := full()
		c.change(r)
		lacks := strings.Join(r.hollow(), "\n")
		if !strings.Contains(lacks, c.lacks) {
			t.Errorf("%s: it lacks %q, want %q", name, lacks, c.lacks)
		}
	}
}

// The verdict on a cluster is worth as much as what it notices in one of its shards.
func TestAWrongBoardInAShardOfAClusterIsNoticed(t *testing.T) {
	testenv.Slow(t)
	w := newWorld(t, cluster, 1)
	w.producers.burst() // of all boards, and of members of all shards
	harness.Eventually(t, recoveredWithin, func() string {
		counted := int64(0)
		for _, at := range w.store.positions(t.Context(), w.place) {
			counted += at
		}
		if counted < 3*eventsInBurst {
			return fmt.Sprintf("%d offsets are counted", counted)
		}
		return ""
	})
	m := ModeReport{Mode: cluster}
	w.judge(&m)
	if len(m.Differences) > 0 || m.Standings == 0 {
		t.Fatalf("%d standings, and where nothing was wrong: %q", m.Standings, m.Differences)
	}
	const shard, other = 0, 1
	board, err := w.liveBoard(t.Context(), shard, rand.New(rand.NewPCG(1, 0)))
	if err != nil || board == "" {
		t.Fatalf("no board: %v", err)
	}
	key, ledger, windows := w.place.KeyIn(shard, board), w.place.KeyIn(shard, "ledger"), w.place.KeyIn(shard, "windows")
	elsewhere := w.place.KeyIn(other, board)
	c := w.store.look
	first := c.ZRangeWithScores(t.Context(), key, 0, 0).Val()
	if len(first) == 0 {
		t.Fatalf("nobody is in %s", key)
	}
	member, score := first[0].Member.(string), first[0].Score
	with := func(score float64) redis.Z { return redis.Z{Member: member, Score: score} }
	its := fmt.Sprintf("%s: %q", board, member)
	banned := strings.TrimPrefix(alwaysBanned, ":")
	where := w.hides(t, banned)
	hidden, visible := w.place.KeyOf(banned, where+":hidden"), w.place.KeyOf(banned, where)
	for name, tamper := range map[string]struct {
		key  string
		do   func(context.Context) error
		says string
	}{
		"a point more": {key, func(ctx context.Context) error { return c.ZAdd(ctx, key, with(score+1)).Err() }, its + ": want"},
		"another last bit": {key, func(ctx context.Context) error {
			return c.ZAdd(ctx, key, with(math.Nextafter(score, math.Inf(1)))).Err()
		}, its + ": want"},
		"somebody missing":     {key, func(ctx context.Context) error { return c.ZRem(ctx, key, member).Err() }, its + " is missing"},
		"a hidden point more":  {hidden, func(ctx context.Context) error { return c.ZIncrBy(ctx, hidden, 1, banned).Err() }, where + `:hidden: "m0": want`},
		"a banned one shown":   {visible, func(ctx context.Context) error { return c.ZAdd(ctx, visible, redis.Z{Member: banned}).Err() }, where + `: "m0" must not be there`},
		"on another shard too": {elsewhere, func(ctx context.Context) error { return c.ZAdd(ctx, elsewhere, with(score)).Err() }, "belongs on 0 of"},
		"no sorted set":        {key, func(ctx context.Context) error { return c.Del(ctx, key).Err() }, board + ": \""},
		"one that never goes":  {key, func(ctx context.Context) error { return c.Persist(ctx, key).Err() }, board + ": goes at"},
		"not listed":           {windows, func(ctx context.Context) error { return c.HDel(ctx, windows, board).Err() }, board + `: shard 0 lists it as "", want`},
		"not all counted":      {ledger, func(ctx context.Context) error { return c.HSet(ctx, ledger, w.place.Topic+"/0", "1").Err() }, "not caught up"},
	} {
		was, err1 := c.Dump(t.Context(), tamper.key).Result()
		goes, err2 := c.PExpireTime(t.Context(), tamper.key).Result() // a moment: what is left gets less meanwhile
		if err := errors.Join(err1, err2, tamper.do(t.Context())); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if found := strings.Join(w.compare(), "\n"); !strings.Contains(found, tamper.says) {
			t.Errorf("%s: the verdict doesn't say %q, but: %s", name, tamper.says, found)
		}
		if err := c.Do(t.Context(), "restore", tamper.key, max(goes, 0).Milliseconds(), was, "replace", "absttl").Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if found := w.compare(); len(found) > 0 {
		t.Errorf("nothing is wrong any more, and the verdict says %q", found)
	}
}

// hides is a board's window of the default rule in which a member is hidden.
func (w *world) hides(t *testing.T, member string) string {
	t.Helper()
	all := w.place.Hidden(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, ok := all[name][member]; ok && strings.HasPrefix(name, "global:") {
			return name
		}
	}
	t.Fatalf("%s is hidden in no window of global", member)
	return ""
}
