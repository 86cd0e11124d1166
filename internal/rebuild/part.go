package rebuild

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// part is an attempt's work on one shard.
type part struct {
	*Job
	*shadow.Rebuild
	reads    *replay.Replay
	shard    int
	live     *ranking.Store
	result   *ShardResult
	starts   []replay.Start
	begun    map[string]int64 // by field, the first offset to read
	orphaned bool             // the live ledger is empty: the group's offsets replace it
	until    map[string]int64
	last     map[string]string // the live ledger as of the previous round
	compared *shadow.Comparison
}

// state reads the live ledger, and retries until Redis answers.
func (p *part) state(ctx context.Context) (s ledger.State, err error) {
	err = shadow.Retry(ctx, func() (err error) { s, err = p.live.State(ctx); return err })
	return s, err
}

// begin writes the starts of those partitions into the shadow that the live ledger has.
func (p *part) begin(ctx context.Context, starts []replay.Start, live *ledger.State) error {
	if !p.orphaned {
		starts = slices.DeleteFunc(starts, func(s replay.Start) bool { _, ok := live.Ledger[s.Field]; return !ok })
	}
	var all []ledger.StartPosition
	for _, s := range starts {
		b, err := s.StartPosition()
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	if err := p.reads.Begin(ctx, p.shard, all...); err != nil {
		return err
	}
	for _, s := range starts {
		p.begun[s.Field] = s.At
		if text, ok := live.Ledger[s.Field]; ok {
			at, err := ledger.Counted(text)
			if err != nil {
				return fmt.Errorf("the ledger of %s: %w", s.Field, err)
			}
			p.until[s.Field] = at.From
		}
	}
	p.starts = append(p.starts, starts...)
	return nil
}

func (p *part) plan(ctx context.Context) error {
	var of *shadow.Plan
	err := shadow.Retry(ctx, func() (err error) { of, err = p.Plan(ctx, p.Choice); return err })
	if err != nil {
		return err
	}
	p.result.Plan = &Plan{Plan: of, Starts: p.starts, Until: maps.Clone(p.until)}
	return nil
}

// limits returns the positions up to which to read now: those of the live ledger. It first starts
// partitions that were added to the live ledger.
//
// To read into the middle of a sweep takes all of its events, and takes them again when the sweep
// continues. So limits stops at the start of a sweep, unless ingestion is held (exact) or the sweep does
// not move, because its worker has halted or ended. It also stops there if this shard cannot be at that
// position, or if no window is kept: a takeover may be behind.
func (p *part) limits(ctx context.Context, exact bool) (map[string]ledger.Position, error) {
	live, err := p.state(ctx)
	if err != nil {
		return nil, err
	}
	last := p.last
	p.last = live.Ledger
	limits := map[string]ledger.Position{}
	if p.orphaned {
		if len(live.Ledger) > 0 {
			return nil, fmt.Errorf("the ledger that was lost is there again: %w", replay.ErrWentBack)
		}
		for field, end := range p.until {
			limits[field] = ledger.At(end)
		}
		return limits, nil
	}
	if err := p.take(ctx, live); err != nil {
		return nil, err
	}
	// A hold that ended early may have left a piece whose reply was lost.
	if err := p.reads.Refresh(ctx, p.shard); err != nil {
		return nil, err
	}
	for field, text := range live.Ledger {
		at, err := ledger.Counted(text)
		if err != nil {
			return nil, fmt.Errorf("the ledger of %s: %w", field, err)
		}
		stands := p.reads.Position(p.shard, field)
		if !replay.Leads(stands, at) {
			return nil, fmt.Errorf("%s is at %v, and the rebuild at %v: %w", field, at, stands, replay.ErrWentBack)
		}
		if at.Sweeping() && !exact && (!p.result.Plan.Keeps() || last[field] != text || !ledger.Shards(len(p.Live)).CanBeAt(p.shard, at)) {
			if at = ledger.At(at.From); !replay.Leads(stands, at) {
				continue // the shadow is in that sweep already
			}
		}
		limits[field] = at
	}
	return limits, nil
}

// take starts the partitions that were added to the live ledger.
func (p *part) take(ctx context.Context, live ledger.State) error {
	for field := range p.begun {
		if _, ok := live.Ledger[field]; !ok {
			return fmt.Errorf("%s is gone from the live ledger: %w", field, replay.ErrWentBack)
		}
	}
	var added []string
	for field := range live.Ledger {
		if _, ok := p.begun[field]; !ok {
			added = append(added, field)
		}
	}
	if len(added) == 0 {
		return nil
	}
	slices.Sort(added)
	from := p.From
	if from.Offsets != nil { // the offsets were written before these partitions existed
		from = replay.From{From: start.FromEarliest}
	}
	starts, err := p.reads.Starts(ctx, from, []ledger.State{live}, added)
	if err != nil {
		return err
	}
	if err := p.begin(ctx, starts[0], &live); err != nil {
		return err
	}
	p.result.Plan.Starts = p.starts
	return nil
}

// turn finishes the shard: it reads up to the live ledger, and swaps. With several shards the common read
// has left this shard slightly behind, which turn reads for it alone.
func (p *part) turn(ctx context.Context, all *Result) error {
	if len(p.Live) > 1 {
		if err := p.close(ctx); err != nil {
			return err
		}
	}
	if p.Job.Compare {
		if err := p.compare(ctx); err != nil {
			return err
		}
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	if p.compared == nil {
		return nil
	}
	p.result.differ, p.result.exact = p.compared.Windows(), p.compared.Exact()
	differences, err := p.compared.Differences(p.List)
	if p.Name {
		p.name(ctx, differences)
	}
	all.list(differences, p.List)
	return err
}

// name fills in the names of the members to list, from the live boards or else from the log. If they cannot
// be read the members are listed without names.
func (p *part) name(ctx context.Context, some []ranking.Difference) {
	if err := ranking.NameDifferences(ctx, some, []*ranking.Store{p.live}, []*ranking.Store{p.Shadow().Store}); err != nil {
		p.notef("what members are called isn't shown: %v", err)
	}
}

const (
	mostDifferent = 1 << 20 // members recorded as different: about 100 MB
	comparePause  = time.Millisecond
)

// compare pages through the live boards and the rebuilt ones. Members that change meanwhile are compared
// again under the hold.
func (p *part) compare(ctx context.Context) error {
	p.notef("comparing the boards with what takes their place")
	var err error
	if p.compared, err = p.Rebuild.Compare(ctx, p.Choice, mostDifferent, comparePause, nil); err != nil {
		return err
	}
	if err := p.close(ctx); err != nil {
		return err
	}
	return p.compared.Update(ctx) // leaves less to compare under the hold
}

// notef writes a note, which names the shard if there are several.
func (p *part) notef(format string, args ...any) {
	if len(p.Live) > 1 {
		format = ranking.ShardName(p.shard, ledger.Shards(len(p.Live)), "") + ": " + format
	}
	p.Watch.notef(format, args...)
}
