package s3

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/archive/snapshot/filestest"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// service is an S3 of the test's own, with a bucket. before, if set, may answer instead.
type service struct {
	*httptest.Server
	backend *s3mem.Backend
	before  atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func newService(t *testing.T, secure bool) *service {
	t.Helper()
	s := &service{backend: s3mem.New()}
	require.NoError(t, s.backend.CreateBucket("boards"))
	fake := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := s.before.Load(); before != nil && (*before)(w, r) {
			return
		}
		fake.ServeHTTP(w, r)
	})
	if secure {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *service) config() Config {
	return Config{Endpoint: s.URL, Region: "us-east-1", Bucket: "boards", Prefix: "live/eu", PathStyle: true, AccessKey: "key", SecretKey: "a secret"}
}

func (s *service) open(t *testing.T) *Bucket {
	t.Helper()
	b, err := Open(t.Context(), s.config())
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

// says has the service answer some requests with an error of S3.
func (s *service) says(which func(*http.Request) bool, status int, code string) {
	before := func(w http.ResponseWriter, r *http.Request) bool {
		if !which(r) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>says the test</Message></Error>", code)
		return true
	}
	s.before.Store(&before)
}

func everyRequest(*http.Request) bool { return true }

func TestABucketKeepsFiles(t *testing.T) {
	filestest.Run(t, func(t *testing.T) snapshot.Files {
		t.Helper()
		return newService(t, false).open(t)
	})
}

func TestFilesHaveThePrefixAndNoOthersAreSeen(t *testing.T) {
	s := newService(t, false)
	b := s.open(t)
	require.Equal(t, "s3://boards/live/eu", b.String())
	c := s.config()
	c.Prefix = ""
	all, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer all.Close()
	require.Equal(t, "s3://boards", all.String())
	filestest.Put(t, b, "a/shard-0", []byte("b"))
	filestest.Put(t, all, "live/eu2/shard-0", []byte("c"))
	require.Equal(t, []string{"a/shard-0"}, filestest.Names(t, b))
	require.Equal(t, []string{"live/eu/a/shard-0", "live/eu2/shard-0"}, filestest.Names(t, all))
}

func TestWhatIsWrongWithTheSettingsIsNamed(t *testing.T) {
	s := newService(t, false)
	c := s.config()
	c.Bucket = "nothing-here"
	_, err := Open(t.Context(), c)
	require.ErrorContains(t, err, "there is no such bucket")
	require.ErrorContains(t, err, "s3://nothing-here/live/eu at "+strings.TrimPrefix(s.URL, "http://"))
	for code, says := range map[string]string{
		"InvalidAccessKeyId": "the key isn't valid", "SignatureDoesNotMatch": "the key isn't valid", "AccessDenied": "no right to do this",
	} {
		s.says(everyRequest, http.StatusForbidden, code)
		_, err := Open(t.Context(), s.config())
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "a secret")
	}
	c = s.config()
	c.CAFile = filepath.Join(t.TempDir(), "none.pem")
	_, err = Open(t.Context(), c)
	require.ErrorContains(t, err, "none.pem")
	require.NoError(t, os.WriteFile(c.CAFile, []byte("x"), 0o600))
	_, err = Open(t.Context(), c)
	require.ErrorContains(t, err, "no certificate in PEM")
}

func TestTheServicesCertificateIsVerified(t *testing.T) {
	s := newService(t, true)
	_, err := Open(t.Context(), s.config())
	require.ErrorContains(t, err, "certificate")
	c := s.config()
	c.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(c.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	b, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer b.Close()
	filestest.Put(t, b, "a/shard-0", []byte("b"))
	require.Equal(t, []byte("b"), filestest.Get(t, b, "a/shard-0"))
}

func TestABucketThatIsFullOrTakesNoMoreLeavesNothing(t *testing.T) {
	for what, which := range map[string]func(*http.Request) bool{
		"at its first part":     func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "1" },
		"at a later part":       func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "2" },
		"at its begin":          func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploads") },
		"as it is put together": func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") },
	} {
		t.Run(what, func(t *testing.T) {
			s := newService(t, false)
			b := s.open(t)
			s.says(which, http.StatusForbidden, "QuotaExceeded")
			err := b.Write(t.Context(), "a/shard-0", func(w io.Writer) error {
				_, err := w.Write(make([]byte, 20<<20))
				return err
			})
			require.ErrorContains(t, err, "says the test")
			require.ErrorContains(t, err, "s3://boards/live/eu/a/shard-0")
			s.before.Store(nil)
			require.Empty(t, filestest.Names(t, b))
			require.Empty(t, uploads(t, b))
		})
	}
}

// uploads are those that are no files yet.
func uploads(t *testing.T, b *Bucket) (all []string) {
	t.Helper()
	for u := range b.core.ListIncompleteUploads(t.Context(), b.name, b.prefix, true) {
		if minio.ToErrorResponse(u.Err).Code == minio.NoSuchUpload {
			return nil
		}
		require.NoError(t, u.Err)
		all = append(all, u.Key)
	}
	return all
}

// A service that goes silent in the middle, as behind a cut cable, is given up, for reads and writes.
func TestATransferThatStallsIsGivenUp(t *testing.T) {
	s := newService(t, false)
	b := s.open(t)
	filestest.Put(t, b, "a/shard-0", make([]byte, 8<<20))
	was := stallTime
	stallTime = 300 * time.Millisecond
	t.Cleanup(func() { stallTime = was })
	over := make(chan struct{})
	defer close(over)
	before := func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "shard-0"):
			w.Header().Set("Content-Length", "8388608")
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			w.Header().Set("ETag", `"x"`)
			_, _ = w.Write(make([]byte, 1<<20))
			w.(http.Flusher).Flush()
		case strings.HasSuffix(r.URL.Path, "never"):
		case r.URL.Query().Get("partNumber") != "2":
			return false
		}
		select {
		case <-over:
		case <-r.Context().Done():
		}
		return true
	}
	s.before.Store(&before)
	err := b.Write(t.Context(), "b/shard-0", func(w io.Writer) error {
		_, err := w.Write(make([]byte, 20<<20))
		return err
	})
	require.ErrorIs(t, err, errStalled)
	for _, name := range []string{"a/shard-0", "a/never"} { // stalls in its middle, and before its first byte
		from, err := b.Open(t.Context(), name)
		if err == nil { // else a busy machine has taken the whole time for the answer's begin
			_, err = io.Copy(io.Discard, from)
			require.NoError(t, from.Close())
		}
		require.ErrorIs(t, err, errStalled)
	}
	require.Equal(t, []string{"a/shard-0"}, filestest.Names(t, b))
}

// A connection that breaks in the middle of a part is made anew, and the part is sent again.
func TestAPartWhoseConnectionBreaksIsSentAgain(t *testing.T) {
	s := newService(t, false)
	b := s.open(t)
	var cut atomic.Int64
	before := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") != "2" || cut.Add(1) > 2 {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
		return true
	}
	s.before.Store(&before)
	want := make([]byte, 20<<20)
	for i := range want {
		want[i] = byte(i >> 12)
	}
	filestest.Put(t, b, "a/shard-0", want)
	require.Greater(t, cut.Load(), int64(2))
	require.True(t, bytes.Equal(want, filestest.Get(t, b, "a/shard-0")))
}

func TestKeysAreTakenFromTheEnvironmentWhereTheSettingsHaveNone(t *testing.T) {
	s := newService(t, false)
	t.Setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	var seen atomic.Value
	before := func(_ http.ResponseWriter, r *http.Request) bool {
		seen.Store(r.Header.Get("Authorization"))
		return false
	}
	s.before.Store(&before)
	c := s.config()
	c.AccessKey, c.SecretKey = "", ""
	b, err := Open(t.Context(), c)
	require.NoError(t, err)
	b.Close()
	require.Contains(t, seen.Load(), "Credential=from-the-environment/")
}

func TestAServiceThatIsAwayIsNamed(t *testing.T) {
	s := newService(t, false)
	c := s.config()
	s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := Open(ctx, c)
	require.Error(t, err)
	at, parsed := url.Parse(c.Endpoint)
	require.NoError(t, parsed)
	require.ErrorContains(t, err, at.Host)
}
