package snapshot

// Snapshots in a directory.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Dir is a directory, with one of each snapshot in it. It is made once something is written.
type Dir struct {
	Path string
	// create makes a file; tests have disks that are full.
	create func(path string) (io.WriteCloser, error)
}

var _ Files = Dir{}

// unfinished ends the name of a file that is being written.
const unfinished = ".part"

func (d Dir) String() string { return d.Path }

func (d Dir) path(name string) string { return filepath.Join(d.Path, filepath.FromSlash(name)) }

// Write writes a file under another name first, and gives it its own once it is on the disk.
func (d Dir) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	path := d.path(name)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err //nolint:wrapcheck // it names the path, as those below do
	}
	part := path + unfinished
	to, err := d.open(part)
	if err != nil {
		return err
	}
	err = write(&endingWriter{ctx, to})
	if err == nil {
		err = synced(to)
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, gone(os.Remove(part)))
	}
	return errors.Join(syncDir(dir), syncDir(d.Path))
}

func (d Dir) open(path string) (io.WriteCloser, error) {
	if d.create != nil {
		return d.create(path)
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640) //nolint:wrapcheck // it names the path
}

func synced(file io.WriteCloser) error {
	if f, ok := file.(interface{ Sync() error }); ok {
		return f.Sync() //nolint:wrapcheck // as above
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err //nolint:wrapcheck // it names the path
	}
	return errors.Join(d.Sync(), d.Close())
}

// gone is an error of removing, where that something is gone already is none.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Open opens a file.
func (d Dir) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(d.path(name)) //nolint:wrapcheck // it names the path
}

// List reads the directories of all snapshots.
func (d Dir) List(ctx context.Context) (all []FileInfo, err error) {
	err = d.each(ctx, func(name string, is fs.FileInfo) error {
		if !strings.HasSuffix(name, unfinished) {
			all = append(all, FileInfo{Name: name, Bytes: is.Size(), Written: is.ModTime()})
		}
		return nil
	})
	return all, err
}

// each goes through the files of all snapshots' directories.
func (d Dir) each(ctx context.Context, do func(name string, is fs.FileInfo) error) error {
	dirs, err := os.ReadDir(d.Path)
	if err = gone(err); err != nil {
		return err
	}
	for _, dir := range dirs {
		if !dir.IsDir() || !nameForm.MatchString(dir.Name()) {
			continue
		}
		files, err := os.ReadDir(d.path(dir.Name()))
		if err = errors.Join(gone(err), ctx.Err()); err != nil {
			return err
		}
		for _, f := range files {
			is, err := f.Info()
			if errors.Is(err, fs.ErrNotExist) || err == nil && !is.Mode().IsRegular() {
				continue // somebody removed it, or it isn't ours
			}
			if err == nil {
				err = do(dir.Name()+"/"+f.Name(), is)
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", d.path(dir.Name()), err)
			}
		}
	}
	return nil
}

// Remove removes a file, and the snapshot's directory with its last one.
func (d Dir) Remove(_ context.Context, name string) error {
	if err := gone(os.Remove(d.path(name))); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(d.path(name))) // which fails while there is another
	return nil
}

// Sweep removes files that were being written, and directories that are empty.
func (d Dir) Sweep(ctx context.Context, before time.Time) error {
	var errs []error
	err := d.each(ctx, func(name string, is fs.FileInfo) error {
		if strings.HasSuffix(name, unfinished) && is.ModTime().Before(before) {
			errs = append(errs, d.Remove(ctx, name))
		}
		return nil
	})
	dirs, failed := os.ReadDir(d.Path)
	errs = append(errs, err, gone(failed))
	for _, dir := range dirs {
		if is, err := dir.Info(); err == nil && dir.IsDir() && nameForm.MatchString(dir.Name()) && is.ModTime().Before(before) {
			_ = os.Remove(d.path(dir.Name())) // which fails while it has a file
		}
	}
	return errors.Join(errs...)
}

// endingWriter ends with a context.
type endingWriter struct {
	ctx context.Context //nolint:containedctx // it is one call's
	to  io.Writer
}

func (w *endingWriter) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(b) //nolint:wrapcheck // whoever writes says what
}
