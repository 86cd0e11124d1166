package snapshot

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// Pace is how a snapshot is read.
type Pace struct {
	// Pause is between two pages. Each takes about a millisecond of Redis's time.
	Pause time.Duration
	// Lease is how long nothing may be read before the snapshot is lost, and how long another waits for
	// one that has died.
	Lease time.Duration
	// Progress, if set, is called after every page with what was written so far.
	Progress func(Progress)
}

// Progress is how far a snapshot has come.
type Progress struct {
	Shard int // that is being read
	Of    int
	Counts
	Bytes int64 // packed
}

// Take reads all shards of a prefix, one after another, and writes a snapshot of them. After an error
// there is none, and the ones before are as they were.
func (s Store) Take(ctx context.Context, shards []*ranking.Store, pace Pace) (*Manifest, error) {
	if len(shards) == 0 {
		return nil, errors.New("take a snapshot: of no shard")
	}
	p := s.Create(time.Now(), shards[0].Prefix(), shards[0].Schema())
	for _, shard := range shards {
		if err := p.take(ctx, shard, pace); err != nil {
			return nil, errors.Join(err, p.Abort(ctx))
		}
	}
	m, err := p.Commit(ctx, time.Now())
	if err != nil {
		return nil, errors.Join(err, p.Abort(ctx))
	}
	return m, nil
}

func (p *Pending) take(ctx context.Context, s *ranking.Store, pace Pace) error {
	sn, err := s.BeginSnapshot(ctx, pace.Lease)
	if err != nil {
		return err
	}
	// At its end this does nothing any more. Where it fails the lease ends.
	defer sn.Close(context.WithoutCancel(ctx))
	shard, of := s.Shard()
	t := &taking{head: Head{s.Prefix(), shard, int(of), s.Schema()}, read: sn, pace: pace}
	for _, f := range p.manifest.Files {
		t.before.Bytes += f.Bytes
		t.before.Counts = t.before.plus(f.Counts)
	}
	if err := p.Shard(ctx, sn.Begin.Ledger, func(to io.Writer) (Counts, error) { return t.write(ctx, to) }); err != nil {
		return err
	}
	p.manifest.Files[len(p.manifest.Files)-1].Rules = t.writer.Rules()
	return nil
}

// taking is a shard that is read and written.
type taking struct {
	head   Head
	read   *ranking.Snapshot
	pace   Pace
	before Progress // of the shards before it
	writer *Writer
}

func (t *taking) write(ctx context.Context, to io.Writer) (c Counts, err error) {
	if t.writer, err = NewWriter(to, t.head, &t.read.Begin); err != nil {
		return c, err
	}
	for page, err := range t.read.Pages(ctx, t.pace.Pause) {
		if err == nil {
			err = t.writer.Page(page)
		}
		if err != nil {
			return c, err
		}
		t.progress()
	}
	beside, err := t.read.End(ctx)
	if err != nil {
		return c, err
	}
	return t.writer.End(beside)
}

func (t *taking) progress() {
	if t.pace.Progress == nil {
		return
	}
	t.pace.Progress(Progress{Shard: t.head.Shard, Of: t.head.Shards, Counts: t.before.plus(t.writer.Written()), Bytes: t.before.Bytes + t.writer.blocks.written})
}

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Rows + o.Rows, c.Windows + o.Windows, c.Pages + o.Pages}
}
