// Package s3 keeps files of snapshots in a bucket of S3, of AWS or of a service that speaks as it does.
//
// A file is one upload in parts, of which nobody sees anything before the service has put them together:
// it is there whole, or not at all. Nothing is renamed. An upload that its process leaves is removed by the
// next that retires snapshots, once it is old; a rule of the bucket's own (AbortIncompleteMultipartUpload)
// does no harm beside.
package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/standings/standings/internal/archive/snapshot/files"
)

// Config is how a bucket is reached.
type Config struct {
	Endpoint  string // https://host:port or http://host:port; empty: AWS
	Region    string // empty: the service is asked
	Bucket    string
	Prefix    string // of all names; without slashes at its ends
	PathStyle bool
	// AccessKey and SecretKey are a key. Without one it is looked for in AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, in ~/.aws/credentials, and in the role of the pod or machine.
	AccessKey, SecretKey string
	CAFile               string // PEM; empty: the system's
}

const (
	aws = "https://s3.amazonaws.com"
	// partBytes is how much of a file is held, and sent at once. A file has 10,000 parts at most: 80 GB.
	partBytes = 8 << 20
	// answerTime is how long the service may take to answer, and checkTime to be found.
	answerTime = time.Minute
	checkTime  = 30 * time.Second
)

// stallTime is how long the service may be waited for, and nothing move, before a transfer is given up.
// Tests wait for less.
var stallTime = 2 * time.Minute

var errStalled = errors.New("nothing moved for too long")

// Bucket is a bucket, or what has a prefix in it.
type Bucket struct {
	core   minio.Core
	name   string
	prefix string // empty, or with a slash at its end
	close  func()
}

var _ files.Files = (*Bucket)(nil)

// Open makes sure that the bucket is there, and that its files may be listed.
func Open(ctx context.Context, c Config) (*Bucket, error) {
	b := &Bucket{name: c.Bucket}
	if c.Prefix != "" {
		b.prefix = c.Prefix + "/"
	}
	endpoint := c.Endpoint
	if endpoint == "" {
		endpoint = aws
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("open %v: its endpoint: %w", b, err)
	}
	secure := at.Scheme == "https"
	transport, err := transportOf(c.CAFile, secure)
	if err != nil {
		return nil, fmt.Errorf("open %v: %w", b, err)
	}
	b.close = transport.CloseIdleConnections
	style := minio.BucketLookupAuto
	if c.PathStyle {
		style = minio.BucketLookupPath
	}
	client, err := minio.New(at.Host, &minio.Options{
		Creds: credentialsOf(c), Secure: secure, Transport: transport, Region: c.Region, BucketLookup: style,
	})
	if err != nil {
		return nil, fmt.Errorf("open %v: %w", b, err)
	}
	b.core = minio.Core{Client: client}
	if err := b.check(ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("open %v at %s: %w", b, at.Host, err)
	}
	return b, nil
}

// check lists one object.
func (b *Bucket) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true, MaxKeys: 1}) {
		return explained(o.Err)
	}
	return ctx.Err()
}

func transportOf(caFile string, secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped by Open
	}
	t.ResponseHeaderTimeout = answerTime
	if caFile == "" {
		return t, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("its CA file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("its CA file: %s has no certificate in PEM", caFile)
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.RootCAs = roots
	return t, nil
}

func credentialsOf(c Config) *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

// Close closes connections that nobody uses.
func (b *Bucket) Close() { b.close() }

func (b *Bucket) String() string {
	return strings.TrimSuffix("s3://"+b.name+"/"+b.prefix, "/")
}

// Open reads an object.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	w := watch(ctx)
	body, _, _, err := b.core.GetObject(w, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		err = w.cause(explained(err))
		w.end()
		return nil, fmt.Errorf("%v/%s: %w", b, name, err)
	}
	w.rests()
	return &object{w, body}, nil
}

// object is one that is read.
type object struct {
	*watched

	body io.ReadCloser
}

func (o *object) Read(p []byte) (int, error) {
	o.waits()
	n, err := o.body.Read(p)
	o.rests()
	if err != nil && !errors.Is(err, io.EOF) {
		err = o.cause(err)
	}
	return n, err //nolint:wrapcheck // io.EOF has to stay so
}

func (o *object) Close() error {
	err := o.body.Close()
	o.end()
	return err //nolint:wrapcheck // nothing is lost by it
}

// List lists the objects.
func (b *Bucket) List(ctx context.Context) (all []files.Info, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the channel's goroutine
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, fmt.Errorf("%v: %w", b, explained(o.Err))
		}
		all = append(all, files.Info{Name: strings.TrimPrefix(o.Key, b.prefix), Bytes: o.Size, Written: o.LastModified})
	}
	return all, ctx.Err()
}

// Remove removes an object.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	err := explained(b.core.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %v/%s: %w", b, name, err)
	}
	return nil
}

// explained is an error by what it means for who has to do with files, or with the settings.
func explained(err error) error {
	if err == nil {
		return nil
	}
	switch code := minio.ToErrorResponse(err).Code; code {
	case minio.NoSuchKey:
		return fs.ErrNotExist
	case minio.NoSuchBucket:
		return fmt.Errorf("there is no such bucket: make it, or see snapshots.url: %w", err)
	case minio.InvalidAccessKeyID, "SignatureDoesNotMatch":
		return fmt.Errorf("the key isn't valid (%s): see snapshots.s3.access_key and secret_key: %w", code, err)
	case minio.AccessDenied:
		return fmt.Errorf("the key has no right to do this: see docs/snapshots.md for those that it needs: %w", err)
	}
	return err
}
