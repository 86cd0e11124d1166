package snapshot

import (
	"context"
	"errors"
	"fmt"
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
}

// Take reads all shards of a prefix, one after another, and writes a snapshot of them. After an error
// there is none, and the ones before are as they were.
func (d Dir) Take(ctx context.Context, shards []*ranking.Store, pace Pace) (*Manifest, error) {
	if len(shards) == 0 {
		return nil, errors.New("take a snapshot: of no shard")
	}
	p, err := d.Create(time.Now(), shards[0].Prefix(), shards[0].Schema())
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		if err := p.take(ctx, s, pace); err != nil {
			return nil, errors.Join(err, p.Abort())
		}
	}
	m, err := p.Commit(time.Now())
	if err != nil {
		return nil, errors.Join(err, p.Abort())
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
	head := Head{s.Prefix(), shard, int(of), s.Schema()}
	return p.Shard(sn.Begin.Ledger, func(to io.Writer) (Counts, error) { return write(ctx, to, head, sn, pace.Pause) })
}

func write(ctx context.Context, to io.Writer, head Head, sn *ranking.Snapshot, pause time.Duration) (Counts, error) {
	w, err := NewWriter(to, head, &sn.Begin)
	if err != nil {
		return Counts{}, err
	}
	for page, err := range sn.Pages(ctx, pause) {
		if err == nil {
			err = w.Page(page)
		}
		if err != nil {
			return Counts{}, err
		}
	}
	beside, err := sn.End(ctx)
	if err != nil {
		return Counts{}, err
	}
	return w.End(beside)
}

// Pages are the pages of a shard's file that count, in their order: of one that was surveyed.
func (d Dir) Pages(ctx context.Context, m *Manifest, shard int, s *Survey, each func(*ranking.SnapshotPage) error) error {
	err := d.read(ctx, m, shard, func(from io.Reader) error { return s.Pages(from, each) })
	if err != nil {
		return fmt.Errorf("read the snapshot %s: %w", m.Name, err)
	}
	return nil
}
