package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

// abortTime is for removing the parts of an upload that failed.
const abortTime = 3 * time.Second

// Write uploads a file in parts, as they come: one is held at a time.
func (b *Bucket) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	w := watch(ctx)
	defer w.end()
	from, to := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(to)
		if err == nil {
			_ = to.Close() // the end of the file
		} else {
			_ = to.CloseWithError(errUnwritten) // and not err itself, which may be one that ends a file
		}
		written <- err
	}()
	_, err := b.core.Client.PutObject(w, b.name, b.prefix+name, &source{w, from}, -1,
		minio.PutObjectOptions{PartSize: partBytes, ContentType: "application/octet-stream",
			SendContentMd5: true, DisableContentSha256: true}) // every service compares an MD5, and few know chunks that are signed
	_ = from.CloseWithError(errStopped) // whoever writes still ends
	if failed := <-written; failed != nil && !errors.Is(failed, errStopped) {
		err = failed // what was to be written couldn't be: that is why the upload failed
	}
	if err == nil {
		return nil
	}
	b.abort(ctx, name)
	return fmt.Errorf("write %v/%s: %w", b, name, w.cause(explained(err)))
}

var (
	errStopped   = errors.New("the upload has failed")
	errUnwritten = errors.New("what was to be uploaded couldn't be written")
)

// abort removes the parts of an upload that failed, as far as that is possible: else Sweep does.
func (b *Bucket) abort(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	_ = b.core.RemoveIncompleteUpload(ctx, b.name, b.prefix+name) // see above
}

// Sweep removes uploads that were begun before a time, and are no files yet.
func (b *Bucket) Sweep(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs []error
	for u := range b.core.ListIncompleteUploads(ctx, b.name, b.prefix, true) {
		if minio.ToErrorResponse(u.Err).Code == minio.NoSuchUpload {
			break // as some services say that there is none
		}
		if u.Err != nil {
			errs = append(errs, explained(u.Err))
			break
		}
		if u.Initiated.Before(before) {
			errs = append(errs, b.core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove unfinished uploads of %v: %w", b, err)
	}
	return nil
}

// source is what is uploaded: a part of it is read, and sent before the next is read.
type source struct {
	*watched

	from io.Reader
}

func (r *source) Read(p []byte) (int, error) {
	r.rests()
	n, err := r.from.Read(p)
	r.waits()
	return n, err //nolint:wrapcheck // io.EOF has to stay so
}
