package snapshot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"
)

// Pending is a snapshot that is being written. Nobody takes it for one before it is committed.
type Pending struct {
	store    Store
	name     string
	began    time.Time // by the monotonic clock
	manifest Manifest
}

// abortTime is for removing what was written where the context has ended: the end of a process waits for it.
const abortTime = 3 * time.Second

// Create begins to write a snapshot, which began at a time.
func (s Store) Create(began time.Time, prefix, schema string) *Pending {
	return &Pending{
		store: s, began: time.Now(),
		name:     began.UTC().Format(nameTime) + "-" + strings.ToLower(rand.Text()[:8]),
		manifest: Manifest{Format: format, Prefix: prefix, Schema: schema, Began: began.UTC()},
	}
}

const nameTime = "20060102T150405Z"

// summing is a file whose bytes are counted and summed as they are written.
type summing struct {
	io.Writer

	sum   hash.Hash
	bytes int64
}

func (s *summing) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	_, _ = s.sum.Write(b[:n])
	s.bytes += int64(n)
	return n, err //nolint:wrapcheck // whoever writes says what
}

// Shard writes the file of the next shard, whose pages write sends to the Writer that it makes, and
// returns what it counted.
func (p *Pending) Shard(ctx context.Context, begin map[string]string, write func(io.Writer) (Counts, error)) error {
	f := File{Name: shardName(len(p.manifest.Files)), Begin: begin}
	err := p.store.Files.Write(ctx, p.name+"/"+f.Name, func(to io.Writer) (err error) {
		s := &summing{Writer: to, sum: sha256.New()}
		f.Counts, err = write(s)
		f.Bytes, f.SHA256 = s.bytes, hex.EncodeToString(s.sum.Sum(nil))
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", p.store.path(p.name, f.Name), err)
	}
	p.manifest.Files = append(p.manifest.Files, f)
	return nil
}

// Commit makes it a snapshot: once this returns without an error it is there, and stays. One that took
// too long isn't committed, as others may take it for abandoned.
func (p *Pending) Commit(ctx context.Context, ended time.Time) (*Manifest, error) {
	m := p.manifest
	m.Ended, m.Name = ended.UTC(), p.name
	text, err := json.MarshalIndent(m, "", "  ")
	if took := time.Since(p.began); err == nil && took > longest {
		err = fmt.Errorf("it took %v, and %v is the most", took.Round(time.Second), longest)
	}
	if err == nil {
		err = p.store.Files.Write(ctx, p.name+"/"+manifestName, func(to io.Writer) error {
			_, err := to.Write(append(text, '\n'))
			return err //nolint:wrapcheck // wrapped below
		})
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", p.store.path(p.name, manifestName), err)
	}
	return &m, nil
}

// Abort removes what was written, as far as that is possible: the manifest first, which may be there
// where the answer to its write was lost.
func (p *Pending) Abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	errs := []error{p.store.Files.Remove(ctx, p.name+"/"+manifestName)}
	for i := range len(p.manifest.Files) + 1 {
		errs = append(errs, p.store.Files.Remove(ctx, p.name+"/"+shardName(i)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove a snapshot that wasn't finished: %w", err)
	}
	return nil
}
