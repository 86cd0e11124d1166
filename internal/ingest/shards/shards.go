// Package shards holds the standings of all shards, as the ingestion needs them, and what is agreed between them: their
// states, and the borders of windows.
package shards

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// All are the standings of all shards, in their order.
type All []Standings

// Count returns the number of shards.
func (all All) Count() ledger.Shards { return ledger.Shards(len(all)) }

// Classify returns the reaction to an error of a call to any shard.
func (all All) Classify(err error) ledger.Verdict { return all[0].Classify(err) }

// Each calls do for every shard concurrently, and returns when all calls have ended. If there are permanent
// errors, it returns that of the first shard with one; if all errors are transient, it returns an error that
// names their shards.
func (all All) Each(do func(shard int, s Standings) error) error {
	if len(all) == 1 {
		return do(0, all[0])
	}
	errs := make([]error, len(all))
	var together sync.WaitGroup
	for i, s := range all {
		together.Go(func() { errs[i] = do(i, s) })
	}
	together.Wait()
	for _, err := range errs {
		if err != nil && all.Classify(err) != ledger.Retry {
			return err
		}
	}
	return health.WaitsForShards(errs)
}

// States returns the state of every shard, each as of its own moment.
func (all All) States(ctx context.Context) ([]ledger.State, error) {
	states := make([]ledger.State, len(all))
	err := all.Each(func(i int, s Standings) (err error) {
		states[i], err = s.State(ctx)
		return err
	})
	return states, err
}

// CheckSchema reports whether every shard has the schema that this process writes.
func (all All) CheckSchema(states []ledger.State) error {
	for i := range states {
		if err := all[i].CheckSchema(states[i].Schema); err != nil {
			return err
		}
	}
	return nil
}

// TextsOf returns the ledgers' texts of a field, by shard.
func TextsOf(states []ledger.State, field string) []string {
	texts := make([]string, len(states))
	for i := range states {
		texts[i] = states[i].Ledger[field]
	}
	return texts
}

// RefillOf returns the highest offset up to which a shard is refilled after a loss; 0 if none is.
func RefillOf(states []ledger.State, field string) int64 {
	refill := int64(0)
	for i := range states {
		refill = max(refill, states[i].Refills[field])
	}
	return refill
}

// LowestOf returns the lowest offset of a field's positions, and false if a position can't be parsed.
func LowestOf(texts []string) (int64, bool) {
	all := make(ledger.Positions, len(texts))
	for i, text := range texts {
		var err error
		if all[i], err = ledger.Parse(text); err != nil {
			return 0, false
		}
	}
	return all.Lowest(), true
}

// Tagged wraps standings so that their errors name the shard and are distinguished from errors of Kafka.
func Tagged(all []Standings) All {
	tagged := slices.Clone(all)
	for i, s := range tagged {
		tagged[i] = taggedStandings{s, i}
	}
	return tagged
}

// On returns a suffix for messages that names the shard; empty if there is only one.
func On(shard int, of ledger.Shards) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf(" on shard %d of %d", shard, of)
}
