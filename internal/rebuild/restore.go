package rebuild

// A restore: a rebuild whose shadow is loaded from a snapshot, before the log is folded into it. Why that
// is exact is in internal/archive/snapshot ("Restoring").
//
//	check ─▶ lock ─▶ hold, where nothing is live ─▶ collect ─▶ load ─▶ begin ─▶ as any rebuild
//
// Where the live ledger is empty, consumers that run would begin it by themselves. So it is held from the
// beginning, and for as long as the restore lives. Of the two who want to begin it first, each by a script:
//
//	a consumer's start.lua, then the hold    the ledger read after the hold isn't empty: the hold is let
//	                                         go of, and the restore goes on beside live boards
//	the hold, then a consumer's start.lua    the consumer is held up, until the restore has swapped: then
//	                                         it finds a ledger, and goes on from there
//	the restore is paused past its lease,    the hold has lapsed: its renewal, or the swap, finds none, and
//	and a consumer begins                    nothing is swapped. Tried again, it goes beside live boards
//
// A restore that is killed leaves the hold for a lease at most.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Snapshot is a snapshot to be restored, all of whose files were read once, and compared with their
// checksums.
type Snapshot struct {
	Name    string
	Surveys []*snapshot.Survey // one a shard that it has, in order
	// Pages calls each with the pages of a shard that count, in their order, each time that it is called.
	Pages func(ctx context.Context, shard int, each func(*ranking.SnapshotPage) error) error
	// Memory is how many bytes it may take to know what members have already, beside what a replay takes.
	Memory int64
}

// Rows are those of all shards.
func (s *Snapshot) Rows() (n int64) {
	for _, of := range s.Surveys {
		n += of.Counts.Rows
	}
	return n
}

// Check is what a restore finds before it changes anything.
type Check struct {
	Shards int // that there are now
	// Empty are the shards whose ledger is empty; the others have live boards.
	Empty      []int
	Partitions []CheckedPartition // by field
	// Refused is why it can't be done; empty if it can.
	Refused []string
}

// CheckedPartition is one that the snapshot has.
type CheckedPartition struct {
	Field string
	From  int64 // the lowest offset that is read
	Reach int64 // the offset that the latest page has to do with
	Until int64 // to where it is read at first; consumers may go on meanwhile
	Log   kafkaconn.Log
}

// Records are those to be read, at first.
func (c *Check) Records() (n int64) {
	for _, p := range c.Partitions {
		n += max(0, p.Until-p.From)
	}
	return n
}

// reach is, of each partition, the offset that any page of any shard has to do with.
func (s *Snapshot) reach() map[string]int64 {
	all := map[string]int64{}
	for _, of := range s.Surveys {
		for field, at := range of.Reach {
			all[field] = max(all[field], at)
		}
	}
	return all
}

// Check reads the live ledgers and the log, and says what a restore would do, and why it can't be done.
// It writes nothing.
func (j *Job) Check(ctx context.Context) (*Check, error) {
	var live []ledger.State
	var shadows []*shadow.Store
	for _, s := range j.Live {
		var state ledger.State
		err := shadow.Retry(ctx, func() (err error) { state, err = s.State(ctx); return err })
		if err != nil {
			return nil, err
		}
		live = append(live, state)
		shadows = append(shadows, &shadow.Store{Store: s.Shadow("check", j.Lease)}) // of which nothing is called
	}
	reads, err := j.Replay(shadows)
	if err != nil {
		return nil, err
	}
	return j.check(ctx, reads, live)
}

func (j *Job) check(ctx context.Context, reads *ingest.Replay, live []ledger.State) (*Check, error) {
	c := &Check{Shards: len(j.Live)}
	snap := j.Restore
	for _, s := range snap.Surveys {
		is := j.Live[0].Schema()
		of, err := ranking.SchemaOn(s.Head.Schema, ledger.Shards(len(j.Live)))
		if err != nil {
			return nil, fmt.Errorf("the snapshot's schema: %w", err)
		}
		if of != is {
			c.Refused = append(c.Refused, "the snapshot's scores were written with another configuration: "+
				strings.Join(ranking.Differences(of, "the snapshot", is), "; ")+"; set it back, and restore then")
			return c, nil
		}
	}
	for shard, s := range j.Live {
		if err := s.CheckSchema(live[shard].Schema); err != nil {
			return nil, err
		}
		if len(live[shard].Ledger) == 0 {
			c.Empty = append(c.Empty, shard)
		}
	}
	shares, err := snap.shares(ledger.Shards(len(j.Live)))
	if err != nil {
		return nil, err
	}
	c.rules(snap, reads.RulesFingerprint())
	c.halves(shares)
	if err := c.logs(ctx, shares, reads, live); err != nil {
		return nil, err
	}
	if n := reads.LooksBack(); n > 0 && !j.Choice.AcceptIncomplete {
		c.repeats(n)
	}
	return c, nil
}

// rules refuses a snapshot that was counted by other rules: a record that is counted in one window would
// count by others in another.
func (c *Check) rules(s *Snapshot, own ledger.Fingerprint) {
	var others []string
	for _, of := range s.Surveys {
		for field, by := range of.Rules {
			for text := range by {
				if text != own.String() && !slices.Contains(others, field) {
					others = append(others, field)
				}
			}
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		c.Refused = append(c.Refused, fmt.Sprintf("%s were counted by other rules than are configured, by which a record would count twice, in part: restore with the configuration that the snapshot was taken with, and change it afterwards",
			strings.Join(others, ", ")))
	}
}

// repeats refuses a log that lacks records of which a repeat may be read, which then would count.
func (c *Check) repeats(n int64) {
	for _, p := range c.Partitions {
		if need := max(0, p.From-n); p.Log.Start > need && p.Log.Start <= p.From {
			c.Refused = append(c.Refused, fmt.Sprintf("the log of %s begins at offset %d, and has to be read from %d for event.duplicates: what repeats a record that is gone would count; "+
				"restore a newer snapshot, or accept that (--accept-incomplete)", p.Field, p.Log.Start, need))
		}
	}
}

func (c *Check) logs(ctx context.Context, shares []share, reads *ingest.Replay, live []ledger.State) error {
	from, reach := map[string]int64{}, map[string]int64{}
	for i := range shares {
		for field, at := range shares[i].first {
			if was, ok := from[field]; !ok || at < was {
				from[field] = at
			}
			reach[field] = max(reach[field], shares[i].reach[field])
		}
	}
	fields := slices.Sorted(maps.Keys(reach))
	logs, err := reads.Logs(ctx, fields)
	if err != nil {
		return err
	}
	committed, err := reads.Committed(ctx, fields)
	if err != nil {
		return err
	}
	for _, field := range fields {
		p := CheckedPartition{Field: field, From: from[field], Reach: reach[field], Until: max(reach[field], committed[field]), Log: logs[field]}
		switch {
		case p.Log.Start > p.From:
			c.Refused = append(c.Refused, fmt.Sprintf("the log of %s begins at offset %d, and has to be read from %d, where the snapshot begins: what lies between is gone; restore a newer one, or rebuild what the log has", field, p.Log.Start, p.From))
		case p.Log.End < p.Reach:
			c.Refused = append(c.Refused, fmt.Sprintf("the log of %s ends at offset %d, and the snapshot has events up to %d: the topic was recreated, or its log was cut", field, p.Log.End, p.Reach))
		}
		if len(c.Empty) < len(live) {
			for i := range live {
				text, ok := live[i].Ledger[field]
				if !ok {
					continue
				}
				at, err := ledger.Counted(text)
				if err != nil {
					return fmt.Errorf("the ledger of %s: %w", field, err)
				}
				p.Until = max(p.Until, at.From)
				if torn := strings.HasPrefix(text, ledger.TornMark); at.From < shares[i].reach[field] && (torn || at.From < p.Log.Start) {
					c.stuck(field, text, p.Log.Start, shares[i].reach[field])
				}
			}
		}
		c.Partitions = append(c.Partitions, p)
	}
	return nil
}

// stuck refuses live boards that nobody brings past the snapshot.
func (c *Check) stuck(field, at string, start, reach int64) {
	c.Refused = append(c.Refused, fmt.Sprintf("the live boards are at %s of %s, whose log begins at offset %d, and the snapshot has events up to %d: consumers can't go on from there. "+
		"Remove what is under the prefix (consumer drop), and restore then", at, field, start, reach))
}

// errBehind says that the live ledger is before a position of the snapshot.
var errBehind = errors.New("the live boards aren't as far as the snapshot")

// behind says which partition of the live ledger isn't past all pages yet, and nothing where all are: until
// then the shadow's scores aren't what its ledger denotes.
func (p *part) behind(live map[string]string) (string, error) {
	if p.Restore == nil || p.orphaned {
		return "", nil
	}
	for _, field := range p.share.fields() {
		text, ok := live[field]
		if !ok {
			return field + " isn't begun there", nil
		}
		at, err := ledger.Counted(text)
		if err != nil {
			return "", fmt.Errorf("the ledger of %s: %w", field, err)
		}
		if reach := p.share.reach[field]; at.From < reach {
			return fmt.Sprintf("%s is at %v there, and the snapshot has events up to offset %d", field, at, reach), nil
		}
	}
	return "", nil
}

// awaitPast waits until consumers are past all pages of the snapshot, before anything is loaded: from then
// on the shadow can go to wherever the live ledger is.
func (p *part) awaitPast(ctx context.Context, empty bool) error {
	if empty {
		return nil
	}
	still, last := standstill.Start(), ""
	for {
		live, err := p.state(ctx)
		if err != nil {
			return err
		}
		why, err := p.behind(live.Ledger)
		if err != nil || why == "" {
			return err
		}
		if why != last {
			if last == "" {
				p.notef("waiting for the consumers: %s", why)
			}
			still, last = standstill.Start(), why
		}
		if err := still.Next(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return fmt.Errorf("%w, and haven't moved for %v: %s; start a consumer, and restore then", errBehind, standstill.Patience, why)
		}
	}
}

// past says that the live ledger, as it was read last, is past all pages still.
func (p *part) past() error {
	why, err := p.behind(p.last)
	if err == nil && why != "" {
		err = fmt.Errorf("%s: %w", why, ingest.ErrWentBack)
	}
	return err
}

// beforeSwap writes what the swap needs beside the shadow.
func (p *part) beforeSwap(ctx context.Context) error {
	if !p.DryRun {
		if err := p.Restored(ctx, p.share.dropped, p.share.final); err != nil {
			return err
		}
	}
	return p.close(ctx) // consumers went on
}

// keep holds a shard whose ledger is empty, and returns its state as of then.
func (p *part) keep(ctx context.Context, live ledger.State) (ledger.State, error) {
	if len(live.Ledger) > 0 {
		return live, nil
	}
	if err := shadow.Retry(ctx, func() error { return p.Keep(ctx) }); err != nil {
		return live, err
	}
	now, err := p.state(ctx)
	if err == nil && len(now.Ledger) > 0 { // a consumer was faster
		err = shadow.Retry(ctx, func() error { return p.Release(ctx) })
	}
	p.kept = err == nil && len(now.Ledger) == 0
	return now, err
}
