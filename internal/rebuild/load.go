package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/loaded"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// RoomError says that it takes more memory than there is to know what members have already.
type RoomError struct{ Needs, Has int64 } // bytes

func (e *RoomError) Error() string {
	return fmt.Sprintf("to know what members have already whose events lie between the snapshot's first and last position takes about %d MiB, and there are %d MiB", e.Needs>>20+1, e.Has>>20)
}

// restore checks the snapshot, holds what is empty, loads the rows into the shadows, and has the replay go
// onto them.
func (a *attempt) restore(ctx context.Context, live []ledger.State) error {
	shares, err := a.Restore.shares(ledger.Shards(len(a.parts)))
	if err != nil {
		return err
	}
	for i, p := range a.parts {
		p.share = &shares[i]
	}
	for _, p := range a.left() {
		if live[p.shard], err = p.keep(ctx, live[p.shard]); err != nil {
			return p.named(err)
		}
	}
	check, err := a.check(ctx, a.reads, live)
	if err != nil {
		return err
	}
	if len(check.Refused) > 0 {
		return &shadow.RefusedError{Reasons: check.Refused}
	}
	if err := each(a.left(), func(p *part) error { return p.awaitPast(ctx, len(live[p.shard].Ledger) == 0) }); err != nil {
		return err
	}
	a.target = map[string]int64{}
	for _, p := range check.Partitions {
		a.target[p.Field] = p.Until
	}
	rows, err := a.collect(ctx)
	if err != nil {
		return err
	}
	if err := a.load(ctx, rows); err != nil {
		return err
	}
	for _, p := range a.left() { // consumers went on
		if len(live[p.shard].Ledger) == 0 {
			continue
		}
		if live[p.shard], err = p.state(ctx); err != nil {
			return p.named(err)
		}
	}
	return nil
}

// collect finds who has events between the snapshot's first and last position.
func (a *attempt) collect(ctx context.Context) (*loaded.Rows, error) {
	rows := loaded.New(a.Restore.Memory)
	var from []map[string]int64
	for _, p := range a.parts {
		from = append(from, p.share.first)
	}
	if err := a.reads.Collect(ctx, from, a.Restore.reach(), rows); err != nil {
		return nil, err
	}
	if needs, fits := rows.Needs(); !fits {
		return nil, &RoomError{needs, a.Restore.Memory}
	}
	return rows, nil
}

// load loads all pages, one of the snapshot's shards after another, and notes of which instant the rows
// are that matter.
func (a *attempt) load(ctx context.Context, rows *loaded.Rows) error {
	onto := &ingest.Onto{Counted: map[string]*fold.Counted{}, Final: &fold.Sealed{Keep: true}}
	l := &loads{attempt: a, rows: rows, onto: onto, into: make([]*shadow.Loading, len(a.parts))}
	if a.Watch.Loading != nil {
		defer a.Watch.Loading(a.Restore.Rows(), l.through.Load)()
	}
	for field, at := range a.Restore.reach() {
		onto.Counted[field] = &fold.Counted{Before: at, Rows: rows}
	}
	for _, p := range a.left() {
		l.into[p.shard] = p.Load(a.Restore.Name, a.Restore.begun(p.share.from))
		if err := l.into[p.shard].Dropped(ctx, p.share.dropped); err != nil {
			return p.named(err)
		}
	}
	for shard := range a.Restore.Surveys {
		if err := l.shard(ctx, shard); err != nil {
			return err
		}
	}
	for _, p := range a.left() {
		if err := l.end(ctx, p); err != nil {
			return p.named(err)
		}
	}
	a.reads.GoOnto(onto)
	a.onto = onto
	return nil
}

// loads is the loading of all shards.
type loads struct {
	*attempt
	rows    *loaded.Rows
	onto    *ingest.Onto
	into    []*shadow.Loading // by shard; nil where its turn is over
	through atomic.Int64
	instant loaded.Instant   // the next one
	begin   map[string]int64 // of the snapshot's shard
	changes int64
}

// changeBytes is what a change of a position takes.
const changeBytes = 40

// shard loads one of the snapshot's shards.
func (l *loads) shard(ctx context.Context, shard int) error {
	survey := l.Restore.Surveys[shard]
	l.begin = map[string]int64{}
	for field, c := range l.onto.Counted {
		at, err := ledger.At(0), error(nil) // of a partition that it doesn't have nothing counts
		if _, ok := survey.Reach[field]; ok {
			if l.begin[field], err = first(survey, field); err == nil {
				at = ledger.At(l.begin[field])
			}
		}
		if text := survey.Begin.Ledger[field]; text != "" {
			at, err = ledger.Parse(text)
		}
		if err != nil {
			return fmt.Errorf("the snapshot's first position of %s: %w", field, err)
		}
		c.Absent = append(c.Absent, at)
	}
	var into []*part
	for _, p := range l.parts {
		if slices.Contains(p.share.from, shard) {
			into = append(into, p)
		}
	}
	var last map[string]string // the ledger of the page before
	return l.Restore.Pages(ctx, shard, func(page *ranking.SnapshotPage) error {
		if last == nil || !maps.Equal(page.Ledger, last) {
			if err := l.next(last, page.Ledger); err != nil {
				return err
			}
			last = page.Ledger
		}
		if err := l.note(into, page); err != nil {
			return err
		}
		err := l.page(ctx, into, page)
		l.through.Add(int64(len(page.Rows)))
		return err
	})
}

// page loads a page into the shards that its members are of.
func (l *loads) page(ctx context.Context, into []*part, page *ranking.SnapshotPage) error {
	rows := make([][]ranking.SnapshotRow, len(l.parts))
	for _, row := range page.Rows {
		if row.Member == "" { // nobody's: each shard keeps it
			for _, p := range into {
				rows[p.shard] = append(rows[p.shard], row)
			}
			continue
		}
		of := ledger.Shards(len(l.parts)).Of(xxhash.Sum64String(row.Member))
		rows[of] = append(rows[of], row)
	}
	for _, p := range into {
		// What was dropped after its pages were read the fold opens no more than a consumer would.
		if _, dropped := p.share.dropped[page.Window]; dropped || l.into[p.shard] == nil || !page.First && len(rows[p.shard]) == 0 {
			continue
		}
		own := *page
		own.Rows = rows[p.shard]
		if err := l.into[p.shard].Page(ctx, &own); err != nil {
			return p.named(err)
		}
	}
	return nil
}

// end ends the loading of a shard.
func (l *loads) end(ctx context.Context, p *part) error {
	into := l.into[p.shard]
	if err := into.End(ctx); err != nil {
		return err
	}
	over := into.Over()
	for _, name := range over { // by another retention than the one of then the fold could open it
		w, _, err := ranking.ParseListing(name, "0 0 0")
		if err != nil {
			return err
		}
		l.onto.Final.Add(p.shard, 0, w)
	}
	if len(over) > 0 {
		p.notef("%d windows of the snapshot are over by now, and aren't loaded", len(over))
	}
	return nil
}

// next begins another instant of a shard.
func (l *loads) next(was, is map[string]string) error {
	if l.instant > loaded.Most {
		return errors.New("the snapshot has too many pages")
	}
	for field, c := range l.onto.Counted {
		if was != nil && was[field] == is[field] {
			continue
		}
		at := ledger.At(l.begin[field])
		if text := is[field]; text != "" {
			var err error
			if at, err = ledger.Parse(text); err != nil {
				return fmt.Errorf("the ledger of a page: %s: %w", field, err)
			}
		}
		c.Changes = append(c.Changes, fold.Change{Since: l.instant, At: at})
		l.changes++
	}
	l.instant++
	bytes, _ := l.rows.Needs()
	if needs := bytes + l.changes*changeBytes; needs > l.Restore.Memory {
		return &RoomError{needs, l.Restore.Memory}
	}
	return nil
}

// note takes note of the rows that matter, and of a window that takes nothing.
func (l *loads) note(into []*part, page *ranking.SnapshotPage) error {
	w, _, err := ranking.ParseListing(page.Window, page.Listing)
	if err != nil {
		return err
	}
	if ranking.ListedRevision(page.Listing) > 0 {
		for _, p := range into {
			if page.First {
				l.onto.Final.Add(p.shard, 0, w)
			}
		}
		return nil
	}
	number := l.rows.Number([]byte(w.Board), w.Period, w.Name)
	if number == 0 {
		return nil // no events come for it that may count already
	}
	for i := range page.Rows {
		l.rows.Set(loaded.KeyOf([]byte(page.Rows[i].Member)), number, l.instant-1)
	}
	return nil
}

// snapshotStarts are where the shadow of a shard begins: as the snapshot did.
func (p *part) snapshotStarts() (all []ingest.ReplayStart) {
	for _, field := range p.share.fields() {
		all = append(all, ingest.ReplayStart{Field: field, At: p.share.first[field], Origin: p.share.origins[field]})
	}
	return all
}

// beginRestored begins all shadows where the snapshot did, and what it doesn't have as a rebuild does.
func (a *attempt) beginRestored(ctx context.Context, live []ledger.State) error {
	for _, p := range a.left() {
		starts := p.snapshotStarts()
		l := &live[p.shard]
		if p.orphaned = len(l.Ledger) == 0; p.orphaned {
			l.Ledger = map[string]string{}
			for _, s := range starts {
				l.Ledger[s.Field] = ledger.At(a.target[s.Field]).String()
			}
		}
		if err := p.begin(ctx, starts, l); err != nil {
			return p.named(err)
		}
	}
	return nil
}

// Taken is when the snapshot was begun, by the clock of Redis.
func (s *Snapshot) Taken() time.Time { return time.UnixMilli(s.Surveys[0].Begin.Now).UTC() }

// Windows are those that the snapshot has, by their names; what each of its shards has of a window counts
// once.
func (s *Snapshot) Windows() []string {
	all := map[string]bool{}
	for _, of := range s.Surveys {
		for name := range of.Listings {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
