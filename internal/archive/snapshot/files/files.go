// Package files is what a place for snapshots has to do.
package files

import (
	"context"
	"io"
	"time"
)

// Files is where the files of snapshots are: a directory, a bucket, a database. Several processes may
// have the same. A file's name is that of its snapshot, a slash, and its own; no file is written twice.
type Files interface {
	// Write makes a file of what write writes to its Writer, in flat memory. Once it returns nil the
	// file is there whole, and stays; after an error it isn't there, or whole.
	Write(ctx context.Context, name string, write func(io.Writer) error) error
	// Open reads a file. If there is none, the error is fs.ErrNotExist.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List are all files that are whole. A place that nobody has written to has none.
	List(ctx context.Context) ([]Info, error)
	// Remove takes a file away. One that isn't there is no error.
	Remove(ctx context.Context, name string) error
	// Sweep removes what was written before a time of files that never became whole.
	Sweep(ctx context.Context, before time.Time) error
	// String is where it is, without secrets; followed by a slash and a name it is where a file is.
	String() string
}

// Info is a file that is whole.
type Info struct {
	Name    string
	Bytes   int64
	Written time.Time
}
