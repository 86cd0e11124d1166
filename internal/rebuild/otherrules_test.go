package rebuild

// Rebuilds with other rules than those of the live sweep.

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/test/testenv"
)

// by makes the place's replays use the rules with this name from now on: points are read from the field of
// that name.
func (p *place) by(name string) {
	p.t.Helper()
	counting := func(name string) rulebook.Counting {
		fields, err := event.NewFields(event.Paths{Points: name})
		require.NoError(p.t, err)
		c := rulebook.Counting{Events: p.settings.Events, Windows: p.settings.Rules}
		c.Events.Fields = fields
		return c
	}
	c := counting(name)
	p.settings.Events, p.settings.RulesText = c.Events, name
	p.settings.ReadRules = func(text string) (rulebook.Counting, error) { return counting(text), nil }
}

func fingerprint(t *testing.T, text string) ledger.Fingerprint {
	t.Helper()
	f, err := ledger.ParseFingerprint(rules.Fingerprint(text))
	require.NoError(t, err)
	return f
}

// The live boards are in a sweep started with the rules "old", and a rebuild with the rules "new" ends at
// the same position. Events of the sweep count by "old", and all events before it by "new".
func TestARebuildByOtherRulesSettlesInASweepByThoseItWasBegunBy(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		const events, members = 600, 60
		p := newPlaceOn(t, testenv.Redis(t).Client(t), of, 0, members)
		p.job.Compare = true // so that it holds ingestion
		p.send(events, func(i int) []byte { return fmt.Appendf(nil, `{"user_id":"m%d","old":1,"new":1000}`, i%members) })
		p.begin()
		p.by("old")
		for shard := range p.live { // each in the middle of its own members
			low, share := of.From(shard), ^uint64(0)/uint64(of)
			by := fingerprint(t, "old")
			p.standsAt(shard, ledger.Position{From: 200, To: events, Hash: low + share/2, Rules: by})
			// A consumer's piece brings the text of the rules; a replay's piece does not.
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "rules"), by.String(), "old", topic+"/0", by.String()).Err())
		}
		positions := func() (all []string) {
			for shard := range p.live {
				all = append(all, p.position(shard))
			}
			return all
		}
		was := positions()
		require.Contains(t, was[0], "#")

		p.by("new")
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, was, positions())
		counts := func(sweeps func(hash uint64) bool) map[string]int64 {
			all := map[string]int64{}
			for i := range events {
				member := fmt.Sprintf("m%d", i%members)
				switch hash := xxhash.Sum64String(member); {
				case i < 200:
					all[member] += 1000
				case sweeps(hash):
					all[member]++
				}
			}
			return all
		}
		require.Equal(t, counts(func(hash uint64) bool {
			shard := of.Of(hash)
			return hash < of.From(shard)+^uint64(0)/uint64(of)/2
		}), p.points())
		p.nothingLeft()

		// The consumer has rules of its own, and finishes the sweep by the old ones.
		require.NoError(t, p.consumer().To(t.Context(), replay.AllShards, map[string]ledger.Position{topic + "/0": ledger.At(events)}))
		require.Equal(t, counts(func(uint64) bool { return true }), p.points())
	})
}
