package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// shards are the standings of all shards, in their order.
type shards []Standings

func (all shards) count() ledger.Shards { return ledger.Shards(len(all)) }

// Classify says what an error of a call to any of them asks for.
func (all shards) Classify(err error) ledger.Verdict { return all[0].Classify(err) }

// each does the same for every shard, side by side, and returns once all are through. Of
// several errors it is the gravest, and of those of the first shard; of errors that may pass it
// says of which shards they are.
func (all shards) each(do func(shard int, s Standings) error) error {
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

// states are what stands beside the scores of every shard, each as of one moment of its own.
func (all shards) states(ctx context.Context) ([]ledger.State, error) {
	states := make([]ledger.State, len(all))
	err := all.each(func(i int, s Standings) (err error) {
		states[i], err = s.State(ctx)
		return err
	})
	return states, err
}

// checkSchema says whether every shard was written by what this process writes.
func (all shards) checkSchema(states []ledger.State) error {
	for i := range states {
		if err := all[i].CheckSchema(states[i].Schema); err != nil {
			return err
		}
	}
	return nil
}

// textsOf are the texts of a field in the ledgers of all shards.
func textsOf(states []ledger.State, field string) []string {
	texts := make([]string, len(states))
	for i := range states {
		texts[i] = states[i].Ledger[field]
	}
	return texts
}

// refillOf is up to where any shard is read again since it was lost, 0 where none was.
func refillOf(states []ledger.State, field string) int64 {
	refill := int64(0)
	for i := range states {
		refill = max(refill, states[i].Refills[field])
	}
	return refill
}

// lowestOf is the lowest offset that the ledgers of a field say, false where one says nothing
// that can be read.
func lowestOf(texts []string) (int64, bool) {
	all := make(ledger.Positions, len(texts))
	for i, text := range texts {
		var err error
		if all[i], err = ledger.Parse(text); err != nil {
			return 0, false
		}
	}
	return all.Lowest(), true
}

// tagged are standings whose errors say that they are the standings'.
func tagged(all []Standings) shards {
	tagged := slices.Clone(all)
	for i, s := range tagged {
		tagged[i] = taggedStandings{s, i}
	}
	return tagged
}

// onShard names a shard in messages behind the partition, where there are several.
func onShard(shard int, of ledger.Shards) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf(" on shard %d of %d", shard, of)
}
