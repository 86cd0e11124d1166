package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Store is the snapshots that there are in a place. Several processes may have the same.
type Store struct{ Files Files }

// Manifest is what a snapshot is. It is written last: files without it are no snapshot.
type Manifest struct {
	Format int       `json:"format"`
	Prefix string    `json:"prefix"`
	Schema string    `json:"schema"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Files  []File    `json:"files"` // one a shard, in order

	Name string `json:"-"` // of the snapshot
}

// File is that of a shard.
type File struct {
	Name   string            `json:"name"`
	Bytes  int64             `json:"bytes"`
	SHA256 string            `json:"sha256"`
	Begin  map[string]string `json:"begin"` // the first ledger: the log has to begin at or before it
	Rules  []string          `json:"rules"` // the fingerprints by which partitions were counted on any page, in order
	Counts
}

// Bytes is how large all files are.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// Counts are what all files have.
func (m *Manifest) Counts() (c Counts) {
	for _, f := range m.Files {
		c = c.plus(f.Counts)
	}
	return c
}

const (
	format       = 1
	manifestName = "manifest.json"
	mostManifest = 64 << 20
)

// Errors of a store.
var (
	ErrNoSnapshot = errors.New("there is no such snapshot")
	errName       = errors.New("it is no name of a snapshot")
)

var nameForm = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z2-7]{8}$`)

// List are the snapshots there are, the newest first. Those whose manifest can't be read, or which have
// lost a file, are in the error, and leave the others.
func (s Store) List(ctx context.Context) ([]Manifest, error) {
	files, err := s.Files.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	return s.listed(ctx, files)
}

// listed are the snapshots among files.
func (s Store) listed(ctx context.Context, files []FileInfo) (all []Manifest, err error) {
	bytes := map[string]int64{}
	for _, f := range files {
		bytes[f.Name] = f.Bytes
	}
	var errs []error
	for _, f := range files {
		name, file, _ := strings.Cut(f.Name, "/")
		if file != manifestName || !nameForm.MatchString(name) {
			continue
		}
		m, err := s.manifest(ctx, name)
		if err == nil {
			err = s.complete(m, bytes)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // somebody has just retired it
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, *m)
		}
	}
	// By when they were begun: names have seconds.
	slices.SortFunc(all, func(a, b Manifest) int { return cmp.Or(b.Began.Compare(a.Began), strings.Compare(b.Name, a.Name)) })
	return all, errors.Join(errs...)
}

// complete compares how long files are with the manifest.
func (s Store) complete(m *Manifest, bytes map[string]int64) error {
	for _, f := range m.Files {
		switch is, ok := bytes[m.Name+"/"+f.Name]; {
		case !ok:
			return &DamagedError{s.path(m.Name, f.Name), 0, "it is gone"}
		case is != f.Bytes:
			return &DamagedError{s.path(m.Name, f.Name), min(is, f.Bytes), fmt.Sprintf("it has %d bytes, and the manifest says %d", is, f.Bytes)}
		}
	}
	return nil
}

func (s Store) path(name, file string) string { return s.Files.String() + "/" + name + "/" + file }

func (s Store) manifest(ctx context.Context, name string) (*Manifest, error) {
	path := s.path(name, manifestName)
	f, err := s.Files.Open(ctx, name+"/"+manifestName)
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
		if f.Name != shardName(i) {
			return nil, &DamagedError{path, 0, fmt.Sprintf("its file %d is named %q", i, f.Name)}
		}
	}
	return m, nil
}

func shardName(shard int) string { return fmt.Sprintf("shard-%d", shard) }

// Open is a snapshot by its name.
func (s Store) Open(ctx context.Context, name string) (*Manifest, error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("open the snapshot %q: %w", name, errName)
	}
	m, err := s.manifest(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the snapshot %s: %w", name, ErrNoSnapshot)
	}
	return m, err
}
