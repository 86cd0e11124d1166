package snapshot

// Snapshots in a directory.

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
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Manifest is what a snapshot is. It is written last, and its directory gets its name after that.
type Manifest struct {
	Format int       `json:"format"`
	Prefix string    `json:"prefix"`
	Schema string    `json:"schema"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Files  []File    `json:"files"` // one a shard, in order

	Name string `json:"-"` // of its directory
}

// File is that of a shard.
type File struct {
	Name   string            `json:"name"`
	Bytes  int64             `json:"bytes"`
	SHA256 string            `json:"sha256"`
	Begin  map[string]string `json:"begin"` // the first ledger: the log has to begin at or before it
	Counts
}

const (
	format       = 1
	manifestName = "manifest.json"
	mostManifest = 64 << 20
	unfinished   = ".part" // of the name of a directory that is being written
	leaving      = ".gone" // of one that is being removed
	// abandoned is how old a directory has to be that nobody finished.
	abandoned = 24 * time.Hour
)

// Dir is where snapshots are. Several processes may have the same one.
type Dir struct {
	Path string
	// create makes a file; tests have disks that are full.
	create func(path string) (io.WriteCloser, error)
}

// Errors of a directory.
var (
	ErrNoSnapshot = errors.New("there is no such snapshot")
	errName       = errors.New("it is no name of a snapshot")
)

var nameForm = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z2-7]{8}$`)

// Pending is a snapshot that is being written. Nobody takes it for one before it is committed.
type Pending struct {
	dir      Dir
	name     string
	path     string
	manifest Manifest
}

// Create begins to write a snapshot, which began at a time.
func (d Dir) Create(began time.Time, prefix, schema string) (*Pending, error) {
	name := began.UTC().Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:8])
	p := &Pending{dir: d, name: name, path: filepath.Join(d.Path, name+unfinished),
		manifest: Manifest{Format: format, Prefix: prefix, Schema: schema, Began: began.UTC()}}
	if err := os.MkdirAll(d.Path, 0o750); err != nil {
		return nil, fmt.Errorf("write a snapshot: %w", err)
	}
	if err := os.Mkdir(p.path, 0o750); err != nil {
		return nil, fmt.Errorf("write a snapshot: %w", err)
	}
	return p, nil
}

func (d Dir) open(path string) (io.WriteCloser, error) {
	if d.create != nil {
		return d.create(path)
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
}

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
func (p *Pending) Shard(begin map[string]string, write func(io.Writer) (Counts, error)) error {
	f := File{Name: fmt.Sprintf("shard-%d", len(p.manifest.Files)), Begin: begin}
	to, err := p.dir.open(filepath.Join(p.path, f.Name))
	if err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	s := &summing{Writer: to, sum: sha256.New()}
	f.Counts, err = write(s)
	if err == nil {
		err = synced(to)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(p.path, f.Name), err)
	}
	f.Bytes, f.SHA256 = s.bytes, hex.EncodeToString(s.sum.Sum(nil))
	p.manifest.Files = append(p.manifest.Files, f)
	return nil
}

func synced(file io.WriteCloser) error {
	if f, ok := file.(interface{ Sync() error }); ok {
		return f.Sync() //nolint:wrapcheck // as above
	}
	return nil
}

// Commit makes it a snapshot: once this returns without an error it is on the disk.
func (p *Pending) Commit(ended time.Time) (*Manifest, error) {
	m := p.manifest
	m.Ended, m.Name = ended.UTC(), p.name
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = p.put(manifestName, append(text, '\n'))
	}
	if err == nil {
		err = syncDir(p.path)
	}
	if err == nil {
		err = os.Rename(p.path, filepath.Join(p.dir.Path, p.name))
	}
	if err == nil {
		err = syncDir(p.dir.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("write a snapshot: %w", err)
	}
	return &m, nil
}

func (p *Pending) put(name string, text []byte) error {
	to, err := p.dir.open(filepath.Join(p.path, name))
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	if err == nil {
		err = synced(to)
	}
	return errors.Join(err, to.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err //nolint:wrapcheck // it names the path
	}
	return errors.Join(d.Sync(), d.Close())
}

// Abort removes what was written, as far as that is possible.
func (p *Pending) Abort() error {
	if err := os.RemoveAll(p.path); err != nil {
		return fmt.Errorf("remove a snapshot that wasn't finished: %w", err)
	}
	return nil
}

// List are the snapshots there are, the newest first. Those whose manifest can't be read are in the
// error, and leave the others.
func (d Dir) List() ([]Manifest, error) {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var all []Manifest
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !nameForm.MatchString(e.Name()) {
			continue
		}
		m, err := d.manifest(e.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Manifest) int { return strings.Compare(b.Name, a.Name) })
	return all, errors.Join(errs...)
}

func (d Dir) manifest(name string) (*Manifest, error) {
	path := filepath.Join(d.Path, name, manifestName)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a snapshot: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(io.LimitReader(f, mostManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	m := &Manifest{Name: name}
	switch err := json.Unmarshal(text, m); {
	case len(text) > mostManifest:
		return nil, &DamagedError{path, 0, "it is too long"}
	case err != nil:
		return nil, &DamagedError{path, 0, err.Error()}
	case m.Format != format:
		return nil, &DamagedError{path, 0, fmt.Sprintf("its format is %d, and this program reads %d", m.Format, format)}
	case len(m.Files) == 0:
		return nil, &DamagedError{path, 0, "it has no files"}
	}
	for i, f := range m.Files {
		if f.Name != fmt.Sprintf("shard-%d", i) {
			return nil, &DamagedError{path, 0, fmt.Sprintf("its file %d is named %q", i, f.Name)}
		}
	}
	return m, nil
}

// Open is a snapshot by its name.
func (d Dir) Open(name string) (*Manifest, error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("open the snapshot %q: %w", name, errName)
	}
	m, err := d.manifest(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the snapshot %s: %w", name, ErrNoSnapshot)
	}
	return m, err
}

// Survey reads all of a shard's file, and compares it with the manifest. Nothing of a snapshot is to be
// used before that.
func (d Dir) Survey(ctx context.Context, m *Manifest, shard int) (s *Survey, err error) {
	want := m.Files[shard]
	err = d.read(ctx, m, shard, func(from io.Reader) error {
		sum := sha256.New()
		bytes := &countingReader{from: io.TeeReader(from, sum)}
		if s, err = SurveyOf(bytes); err != nil {
			return err
		}
		switch is := hex.EncodeToString(sum.Sum(nil)); {
		case bytes.n != want.Bytes:
			return &DamagedError{"", bytes.n, fmt.Sprintf("it has so many bytes, and the manifest says %d", want.Bytes)}
		case is != want.SHA256:
			return &DamagedError{"", 0, fmt.Sprintf("its SHA-256 is %s, and the manifest says %s", is, want.SHA256)}
		case s.Counts != want.Counts:
			return &DamagedError{"", 0, fmt.Sprintf("it has %+v, and the manifest says %+v", s.Counts, want.Counts)}
		case s.Head != Head{m.Prefix, shard, len(m.Files), m.Schema}:
			return &DamagedError{"", 0, "its head isn't what the manifest says"}
		}
		return nil
	})
	return s, err
}

// read opens a shard's file, and has errors name it.
func (d Dir) read(ctx context.Context, m *Manifest, shard int, do func(io.Reader) error) error {
	path := filepath.Join(d.Path, m.Name, m.Files[shard].Name)
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open a snapshot: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	err = do(&endingReader{ctx, f})
	if damaged, ok := errors.AsType[*DamagedError](err); ok && damaged.File == "" {
		damaged.File = path
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

// Retire removes all snapshots of a prefix but the newest so many, of which there is at least one, and
// what nobody finished. One that can't be read isn't one of those, and isn't removed.
func (d Dir) Retire(prefix string, keep int, now time.Time) (removed []string, err error) {
	all, err := d.List()
	if len(all) == 0 {
		return nil, err
	}
	errs := []error{err}
	kept := 0
	for _, m := range all {
		if m.Prefix != prefix {
			continue
		}
		if kept++; kept > max(keep, 1) {
			if err := d.remove(m.Name); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, m.Name)
		}
	}
	errs = append(errs, d.clear(now))
	return removed, errors.Join(errs...)
}

// remove takes a snapshot's name away first: of one that is removed in part nobody takes what is left.
func (d Dir) remove(name string) error {
	path := filepath.Join(d.Path, name)
	if err := os.Rename(path, path+leaving); err != nil {
		return fmt.Errorf("remove a snapshot: %w", err)
	}
	if err := os.RemoveAll(path + leaving); err != nil {
		return fmt.Errorf("remove a snapshot: %w", err)
	}
	return nil
}

// clear removes what was left by who died.
func (d Dir) clear(now time.Time) error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	var errs []error
	for _, e := range entries {
		name, part := strings.CutSuffix(e.Name(), unfinished)
		name, gone := strings.CutSuffix(name, leaving)
		if !part && !gone || !nameForm.MatchString(name) {
			continue
		}
		info, err := e.Info()
		if err != nil || part && !lastWrite(filepath.Join(d.Path, e.Name()), info).Before(now.Add(-abandoned)) {
			continue // somebody else was faster, or may be writing it
		}
		errs = append(errs, os.RemoveAll(filepath.Join(d.Path, e.Name())))
	}
	return errors.Join(errs...)
}

// lastWrite is when anything of a directory was written last.
func lastWrite(path string, dir fs.FileInfo) time.Time {
	last := dir.ModTime()
	files, err := os.ReadDir(path)
	for _, f := range files {
		if info, failed := f.Info(); err == nil && failed == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}
