package store

// Files of snapshots, in chunks of a transaction each.
//
// They aren't fenced: each file has a name that nobody else ever writes, is seen by nobody before it is
// whole, and is right whoever wrote it. A leader that was paused finishes its own snapshot, or finds that
// its files were removed as those of a dead process: a chunk without its file is refused by the database.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/standings/standings/internal/archive/snapshot/files"
)

// Snapshots is the archive as a place for snapshots.
type Snapshots struct{ *Store }

var _ files.Files = Snapshots{}

// chunkBytes is how much of a file is held, and written by one transaction.
const chunkBytes = 1 << 20

// abortTime is for removing what was written of a file that failed.
const abortTime = 3 * time.Second

// String is the archive's place, without a password.
func (s Snapshots) String() string { return s.name }

// Write writes a file, chunk by chunk. The schema is migrated, where it is older.
func (s Snapshots) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	w := &chunkWriter{ctx: ctx, store: s.Store, chunk: make([]byte, 0, chunkBytes)}
	err := s.write.QueryRowContext(ctx, `INSERT INTO snapshot_files (name, written_at) VALUES ($1, $2) RETURNING id`, name, s.now()).Scan(&w.file)
	if err != nil {
		return s.fail(err, "begin "+name)
	}
	if err = write(w); err == nil {
		err = w.finish()
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
		defer cancel()
		_, failed := s.write.ExecContext(ctx, `DELETE FROM snapshot_files WHERE id = $1`, w.file)
		return s.fail(errors.Join(err, failed), "write "+name)
	}
	return nil
}

func (s Snapshots) now() any { return s.dialect.at(time.Now().UnixMilli()) }

type chunkWriter struct {
	ctx    context.Context //nolint:containedctx // it is one call's
	store  *Store
	file   int64
	number int64
	bytes  int64
	chunk  []byte
}

func (w *chunkWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		some := min(len(b)-n, cap(w.chunk)-len(w.chunk))
		w.chunk = append(w.chunk, b[n:n+some]...)
		n += some
		if len(w.chunk) == cap(w.chunk) {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush writes a chunk, if its file is there still.
func (w *chunkWriter) flush() error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	_, err := w.store.write.ExecContext(w.ctx, `INSERT INTO snapshot_chunks (file_id, number, content) VALUES ($1, $2, $3)`, w.file, w.number, w.chunk)
	if err != nil {
		if cause := context.Cause(w.ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("chunk %d: %w", w.number, err)
	}
	w.number, w.bytes, w.chunk = w.number+1, w.bytes+int64(len(w.chunk)), w.chunk[:0]
	return nil
}

func (w *chunkWriter) finish() error {
	if len(w.chunk) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	done, err := w.store.write.ExecContext(w.ctx, `UPDATE snapshot_files SET whole = $3, bytes = $2, written_at = $4 WHERE id = $1`, w.file, w.bytes, true, Snapshots{w.store}.now())
	if err != nil {
		return fmt.Errorf("have it whole: %w", err)
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("%w: it was removed meanwhile", ErrGone))
	}
	return nil
}

// empty reports whether the schema has no place for files yet.
func (s Snapshots) empty(ctx context.Context) (bool, error) {
	err := s.Check(ctx)
	if errors.Is(err, ErrSchemaOlder) {
		return true, nil
	}
	return false, err
}

// Open reads a file, chunk by chunk.
func (s Snapshots) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	r := &chunkReader{ctx: ctx, store: s.Store}
	none, err := s.empty(ctx)
	if err == nil && !none {
		err = s.one(ctx, `SELECT id, bytes FROM snapshot_files WHERE name = $1 AND whole`, []any{name}, &r.file, &r.left)
	}
	if none || errors.Is(err, ErrNotFound) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", s, name, err)
	}
	return r, nil
}

type chunkReader struct {
	ctx    context.Context //nolint:containedctx // it is one call's
	store  *Store
	file   int64
	number int64
	left   int64
	chunk  []byte
}

func (r *chunkReader) Read(b []byte) (int, error) {
	if len(r.chunk) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		err := r.store.one(r.ctx, `SELECT content FROM snapshot_chunks WHERE file_id = $1 AND number = $2`, []any{r.file, r.number}, &r.chunk)
		if err != nil {
			return 0, r.store.fail(err, fmt.Sprintf("read chunk %d of a snapshot's file", r.number))
		}
		if len(r.chunk) == 0 || int64(len(r.chunk)) > r.left {
			return 0, r.store.fail(ErrDiffers, fmt.Sprintf("chunk %d of a snapshot's file has %d bytes", r.number, len(r.chunk)))
		}
		r.number, r.left = r.number+1, r.left-int64(len(r.chunk))
	}
	n := copy(b, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (*chunkReader) Close() error { return nil }

// List lists the files that are whole.
func (s Snapshots) List(ctx context.Context) (all []files.Info, err error) {
	if none, err := s.empty(ctx); none || err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	rows, err := s.read.QueryContext(ctx, `SELECT name, bytes, written_at FROM snapshot_files WHERE whole`)
	if err != nil {
		return nil, s.fail(err, "list files of snapshots")
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var is files.Info
		var at instant
		if err := rows.Scan(&is.Name, &is.Bytes, &at); err != nil {
			return nil, s.fail(err, "list files of snapshots")
		}
		is.Written = time.UnixMilli(at.ms)
		all = append(all, is)
	}
	return all, s.fail(rows.Err(), "list files of snapshots")
}

// Remove removes a file, and its chunks with it.
func (s Snapshots) Remove(ctx context.Context, name string) error {
	return s.remove(ctx, "remove "+name, `DELETE FROM snapshot_files WHERE name = $1`, name)
}

// Sweep removes files that were begun before a time, and aren't whole.
func (s Snapshots) Sweep(ctx context.Context, before time.Time) error {
	return s.remove(ctx, "remove unfinished files of snapshots", `DELETE FROM snapshot_files WHERE NOT whole AND written_at < $1`, s.dialect.at(before.UnixMilli()))
}

func (s Snapshots) remove(ctx context.Context, doing, statement string, arg any) error {
	if none, err := s.empty(ctx); none || err != nil {
		return err
	}
	_, err := s.write.ExecContext(ctx, statement, arg)
	return s.fail(err, doing)
}
