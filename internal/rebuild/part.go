package rebuild

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// part is what an attempt does on one shard.
type part struct {
	*Job
	*shadow.Rebuild
	reads    *ingest.Replay
	shard    int
	live     *ranking.Store
	result   *ShardResult
	starts   []ingest.ReplayStart
	begun    map[string]int64 // by field, the first offset that is read
	orphaned bool             // the live ledger is empty: the group's offsets stand for it
	until    map[string]int64
	last     map[string]string // the live ledger as of the round before
	compared *shadow.Comparison
}

// state reads the live ledger, and waits until Redis answers.
func (p *part) state(ctx context.Context) (s ledger.State, err error) {
	err = shadow.Retry(ctx, func() (err error) { s, err = p.live.State(ctx); return err })
	return s, err
}

// begin writes into the shadow where those partitions begin that the live ledger has.
func (p *part) begin(ctx context.Context, starts []ingest.ReplayStart, live *ledger.State) error {
	if !p.orphaned {
		starts = slices.DeleteFunc(starts, func(s ingest.ReplayStart) bool { _, ok := live.Ledger[s.Field]; return !ok })
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

// limits are where partitions are to be read to now: where the live ledger stands. What it
// has and the shadow hasn't, as a partition that was added, begins now.
//
// To read into the middle of a sweep is to read all of its events, and to read them again
// once the sweep goes on. So a sweep is left for later unless it stands still, as one whose
// worker is halted or gone, or is held (exact). So is one that this shard can't be in.
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
			return nil, fmt.Errorf("the ledger that was lost is there again: %w", ingest.ErrWentBack)
		}
		for field, end := range p.until {
			limits[field] = ledger.At(end)
		}
		return limits, nil
	}
	if err := p.take(ctx, live); err != nil {
		return nil, err
	}
	// A hold that wasn't in time may have left a piece whose answer never came.
	if err := p.reads.Refresh(ctx, p.shard); err != nil {
		return nil, err
	}
	for field, text := range live.Ledger {
		at, err := ledger.Counted(text)
		if err != nil {
			return nil, fmt.Errorf("the ledger of %s: %w", field, err)
		}
		stands := p.reads.Position(p.shard, field)
		if !ingest.Leads(stands, at) {
			return nil, fmt.Errorf("%s is at %v, and the rebuild at %v: %w", field, at, stands, ingest.ErrWentBack)
		}
		if at.Sweeping() && !exact && (!p.result.Plan.Keeps() || last[field] != text || !ledger.Shards(len(p.Live)).CanBeAt(p.shard, at)) {
			if at = ledger.At(at.From); !ingest.Leads(stands, at) {
				continue // it is in that sweep already
			}
		}
		limits[field] = at
	}
	return limits, nil
}

// take begins the partitions that the live ledger has had since.
func (p *part) take(ctx context.Context, live ledger.State) error {
	for field := range p.begun {
		if _, ok := live.Ledger[field]; !ok {
			return fmt.Errorf("%s is gone from the live ledger: %w", field, ingest.ErrWentBack)
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
	if from.Offsets != nil { // which was written before these were there
		from = ingest.ReplayFrom{From: start.FromEarliest}
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

// turn brings the shard to where its live ledger is, and swaps. Of several shards it was left
// a little behind: that is read for it alone.
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

// name says what the members of standings that are to be listed are called: by the live boards or,
// if those have no name for one, by the log. Where that can't be read they are listed without.
func (p *part) name(ctx context.Context, some []ranking.Difference) {
	if err := ranking.NameDifferences(ctx, some, []*ranking.Store{p.live}, []*ranking.Store{p.Shadow().Store}); err != nil {
		p.notef("what members are called isn't shown: %v", err)
	}
}

const (
	mostDifferent = 1 << 20 // members that are remembered to differ: 100 MB or so
	comparePause  = time.Millisecond
)

// compare pages through the boards and what takes their place. What changes meanwhile is
// asked for again under the hold.
func (p *part) compare(ctx context.Context) error {
	p.notef("comparing the boards with what takes their place")
	var err error
	if p.compared, err = p.Rebuild.Compare(ctx, p.Choice, mostDifferent, comparePause, nil); err != nil {
		return err
	}
	if err := p.close(ctx); err != nil {
		return err
	}
	return p.compared.Update(ctx) // what is left is for the hold
}

// notef is a note, which names the shard where there are several.
func (p *part) notef(format string, args ...any) {
	if len(p.Live) > 1 {
		format = ranking.ShardName(p.shard, ledger.Shards(len(p.Live)), "") + ": " + format
	}
	p.Watch.notef(format, args...)
}
