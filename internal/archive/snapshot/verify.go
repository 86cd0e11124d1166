package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/ranking"
)

// Survey reads all of a shard's file, and compares it with the manifest. Nothing of a snapshot is to be
// used before that.
func (s Store) Survey(ctx context.Context, m *Manifest, shard int) (is *Survey, err error) {
	want := m.Files[shard]
	err = s.read(ctx, m, shard, func(from io.Reader) error {
		sum := sha256.New()
		bytes := &countingReader{from: io.TeeReader(from, sum)}
		if is, err = SurveyOf(bytes); err != nil {
			return err
		}
		switch got := hex.EncodeToString(sum.Sum(nil)); {
		case bytes.n != want.Bytes:
			return &DamagedError{"", bytes.n, fmt.Sprintf("it has so many bytes, and the manifest says %d", want.Bytes)}
		case got != want.SHA256:
			return &DamagedError{"", 0, fmt.Sprintf("its SHA-256 is %s, and the manifest says %s", got, want.SHA256)}
		case is.Counts != want.Counts:
			return &DamagedError{"", 0, fmt.Sprintf("it has %+v, and the manifest says %+v", is.Counts, want.Counts)}
		case is.Head != Head{m.Prefix, shard, len(m.Files), m.Schema}:
			return &DamagedError{"", 0, "its head isn't what the manifest says"}
		}
		return nil
	})
	return is, err
}

// Pages are the pages of a shard's file that count, in their order: of one that was surveyed.
func (s Store) Pages(ctx context.Context, m *Manifest, shard int, is *Survey, each func(*ranking.SnapshotPage) error) error {
	err := s.read(ctx, m, shard, func(from io.Reader) error { return is.Pages(from, each) })
	if err != nil {
		return fmt.Errorf("read the snapshot %s: %w", m.Name, err)
	}
	return nil
}

// read opens a shard's file, and has errors name it.
func (s Store) read(ctx context.Context, m *Manifest, shard int, do func(io.Reader) error) error {
	f, err := s.Files.Open(ctx, m.Name+"/"+m.Files[shard].Name)
	if err != nil {
		return fmt.Errorf("open a snapshot: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	err = do(&endingReader{ctx, f})
	if damaged, ok := errors.AsType[*DamagedError](err); ok && damaged.File == "" {
		damaged.File = s.path(m.Name, m.Files[shard].Name)
	}
	return err
}

// endingReader ends with a context.
type endingReader struct {
	ctx  context.Context //nolint:containedctx // it is one call's
	from io.Reader
}

func (r *endingReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(b) //nolint:wrapcheck // io.EOF has to stay so
}

type countingReader struct {
	from io.Reader
	n    int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.n += int64(n)
	return n, err //nolint:wrapcheck // as above
}
