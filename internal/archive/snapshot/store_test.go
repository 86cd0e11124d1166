package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
)

var began = time.Date(2026, 11, 25, 19, 0, 0, 0, time.UTC)

// kept writes a snapshot of one shard, as it was so many hours later.
func kept(t testing.TB, d Store, hours int) *Manifest {
	t.Helper()
	p := d.Create(began.Add(time.Duration(hours)*time.Hour), "lb", head.Schema)
	require.NoError(t, p.Shard(t.Context(), map[string]string{"events/0": "120"}, writeSample(t)))
	m, err := p.Commit(t.Context(), began.Add(time.Duration(hours)*time.Hour+time.Minute))
	require.NoError(t, err)
	return m
}

func writeSample(t testing.TB) func(io.Writer) (Counts, error) {
	t.Helper()
	begin, pages, beside := sample()
	return func(to io.Writer) (Counts, error) {
		w, err := NewWriter(to, head, &begin)
		if err != nil {
			return Counts{}, err
		}
		for _, p := range pages {
			if err := w.Page(p); err != nil {
				return Counts{}, err
			}
		}
		return w.End(&beside)
	}
}

func in(t testing.TB) Store {
	t.Helper()
	return Store{Dir{Path: filepath.Join(t.TempDir(), "snapshots")}}
}

func names(t testing.TB, d Store) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(d.Files.String())
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWhatWasCommittedIsListedAndRead(t *testing.T) {
	d := in(t)
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
	older, newer := kept(t, d, 0), kept(t, d, 1)
	all, err = d.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Manifest{*newer, *older}, all)
	require.Equal(t, map[string]string{"events/0": "120"}, all[0].Files[0].Begin)
	m, err := d.Open(t.Context(), older.Name)
	require.NoError(t, err)
	s, err := d.Survey(t.Context(), m, 0)
	require.NoError(t, err)
	rows := 0
	require.NoError(t, d.Pages(t.Context(), m, 0, s, func(p *ranking.SnapshotPage) error { rows += len(p.Rows); return nil }))
	require.Equal(t, 6, rows)
}

func TestASnapshotThatIsntThereIsNamed(t *testing.T) {
	d := in(t)
	_, err := d.Open(t.Context(), "20261125T190000Z-aaaaaaaa")
	require.ErrorIs(t, err, ErrNoSnapshot)
	_, err = d.Open(t.Context(), "../elsewhere")
	require.ErrorIs(t, err, errName)
}

func TestWhatWasntCommittedIsNoSnapshotAndGoesOnceItIsOld(t *testing.T) {
	d := in(t)
	whole := kept(t, d, 0)
	p := d.Create(began, "lb", head.Schema)
	require.NoError(t, p.Shard(t.Context(), nil, writeSample(t)))
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = d.Retire(t.Context(), "lb", 3, time.Now())
	require.NoError(t, err)
	require.Len(t, names(t, d), 2) // somebody may be writing it
	_, err = d.Retire(t.Context(), "lb", 3, time.Now().Add(abandoned+time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{whole.Name}, names(t, d))
}

func TestTheNewestStayAndThoseOfAnotherPrefixDo(t *testing.T) {
	d := in(t)
	var all []string
	for i := range 4 {
		all = append(all, kept(t, d, i).Name)
	}
	p := d.Create(began.Add(-time.Hour), "other", head.Schema)
	require.NoError(t, p.Shard(t.Context(), nil, writeSample(t)))
	other, err := p.Commit(t.Context(), began)
	require.NoError(t, err)
	removed, err := d.Retire(t.Context(), "lb", 2, time.Now())
	require.NoError(t, err)
	slices.Sort(removed)
	require.Equal(t, all[:2], removed)
	require.Equal(t, []string{other.Name, all[2], all[3]}, names(t, d))
	removed, err = d.Retire(t.Context(), "lb", 0, time.Now()) // one stays whatever is asked for
	require.NoError(t, err)
	require.Equal(t, all[2:3], removed)
}

// One that was being removed as its process died is none, and what is left of it goes once it is old.
func TestWhatWasRemovedInPartIsNoSnapshot(t *testing.T) {
	d := in(t)
	m := kept(t, d, 0)
	newer := kept(t, d, 1)
	require.NoError(t, d.Files.Remove(t.Context(), m.Name+"/"+manifestName))
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Manifest{*newer}, all)
	_, err = d.Retire(t.Context(), "lb", 5, time.Now().Add(abandoned+time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{newer.Name}, names(t, d))
}

// So it is where a process was paused before it wrote the manifest, for so long that its files were
// removed as those of a dead one.
func TestASnapshotThatLacksAFileOrBytesIsNamedAndLeavesTheOthers(t *testing.T) {
	for what, spoil := range map[string]func(path string) error{
		"gone":      os.Remove,
		"100 bytes": func(path string) error { return os.Truncate(path, 100) },
	} {
		t.Run(what, func(t *testing.T) {
			d := in(t)
			m, other := kept(t, d, 1), kept(t, d, 0)
			path := filepath.Join(d.Files.String(), m.Name, "shard-0")
			require.NoError(t, spoil(path))
			all, err := d.List(t.Context())
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, what)
			require.ErrorContains(t, err, path)
			require.Equal(t, []Manifest{*other}, all)
		})
	}
}

func TestASnapshotThatTookTooLongIsntCommitted(t *testing.T) {
	d := in(t)
	p := d.Create(began, "lb", head.Schema)
	require.NoError(t, p.Shard(t.Context(), nil, writeSample(t)))
	p.began = time.Now().Add(-longest - time.Minute)
	_, err := p.Commit(t.Context(), time.Now())
	require.ErrorContains(t, err, "it took 12h1m0s")
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestWhatADeadProcessHasBegunGoesOnceItIsOld(t *testing.T) {
	d := in(t)
	whole := kept(t, d, 0)
	dir := filepath.Join(d.Files.String(), "20261125T190000Z-aaaaaaaa")
	empty := filepath.Join(d.Files.String(), "20261125T190000Z-bbbbbbbb")
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.NoError(t, os.Mkdir(dir, 0o700))
	put(t, filepath.Join(dir, "shard-0"+unfinished), []byte("lbsnap01"))
	_, err := d.Retire(t.Context(), "lb", 3, time.Now())
	require.NoError(t, err)
	require.Len(t, names(t, d), 3)
	_, err = d.Retire(t.Context(), "lb", 3, time.Now().Add(abandoned+time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{whole.Name}, names(t, d))
}

func TestADamagedManifestIsNamedAndLeavesTheOthersAndStays(t *testing.T) {
	for what, text := range map[string]string{
		"unexpected end": `{"format":1`,
		"its format is":  `{"format":2,"files":[{"name":"shard-0"}]}`,
		"has no files":   `{"format":1}`,
		"is named":       `{"format":1,"files":[{"name":"../../etc/passwd"}]}`,
	} {
		t.Run(what, func(t *testing.T) {
			d := in(t)
			m, other := kept(t, d, 0), kept(t, d, 1)
			path := filepath.Join(d.Files.String(), m.Name, manifestName)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			all, err := d.List(t.Context())
			require.Equal(t, []Manifest{*other}, all)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, what)
			require.ErrorContains(t, err, path)
			_, err = d.Retire(t.Context(), "lb", 1, time.Now())
			require.ErrorIs(t, err, ErrDamaged)
			require.Len(t, names(t, d), 2)
		})
	}
}

func TestAFileThatIsntTheManifestsIsFound(t *testing.T) {
	for what, spoil := range map[string]func(t *testing.T, path string, file []byte, m *Manifest){
		"at byte":      func(t *testing.T, path string, file []byte, _ *Manifest) { file[len(file)/2] ^= 1; put(t, path, file) },
		"ends before":  func(t *testing.T, path string, file []byte, _ *Manifest) { put(t, path, file[:len(file)-1]) },
		"so many":      func(_ *testing.T, _ string, _ []byte, m *Manifest) { m.Files[0].Bytes++ },
		"SHA-256":      func(_ *testing.T, _ string, _ []byte, m *Manifest) { m.Files[0].SHA256 = strings.Repeat("0", 64) },
		"it has {":     func(_ *testing.T, _ string, _ []byte, m *Manifest) { m.Files[0].Rows++ },
		"head isn't":   func(_ *testing.T, _ string, _ []byte, m *Manifest) { m.Schema = `{"v":2}` },
		"no such file": func(t *testing.T, path string, _ []byte, _ *Manifest) { require.NoError(t, os.Remove(path)) },
	} {
		t.Run(what, func(t *testing.T) {
			d := in(t)
			m := kept(t, d, 0)
			path := filepath.Join(d.Files.String(), m.Name, "shard-0")
			file, err := os.ReadFile(path)
			require.NoError(t, err)
			spoil(t, path, file, m)
			_, err = d.Survey(t.Context(), m, 0)
			if what == "ends before" {
				what = "middle of a block"
			}
			require.ErrorContains(t, err, what)
			require.ErrorContains(t, err, path)
		})
	}
}

func put(t *testing.T, path string, file []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, file, 0o600))
}

// A disk has room for so many bytes.
type disk struct{ room int }

type diskFile struct {
	*disk
	*os.File
}

func (d *disk) create(path string) (io.WriteCloser, error) {
	f, err := os.Create(path)
	return &diskFile{d, f}, err
}

func (f *diskFile) Write(b []byte) (int, error) {
	if len(b) > f.room {
		n, _ := f.File.Write(b[:f.room])
		f.room = 0
		return n, syscall.ENOSPC
	}
	f.room -= len(b)
	return f.File.Write(b)
}

// Wherever a disk becomes full, the snapshot that was being written goes, and the one before stays.
func TestOnAFullDiskTheSnapshotBeforeStays(t *testing.T) {
	whole := len(sampleFile(t)) + 1200
	committed := 0
	for room := 0; room < whole; room += 40 {
		d := in(t)
		before := kept(t, d, 0)
		d.Files = Dir{Path: d.Files.String(), create: (&disk{room}).create}
		p := d.Create(began, "lb", head.Schema)
		err := p.Shard(t.Context(), nil, writeSample(t))
		if err == nil {
			_, err = p.Commit(t.Context(), began)
		}
		if err == nil {
			committed++
			continue
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, p.Abort(t.Context()))
		require.Equal(t, []string{before.Name}, names(t, d))
		_, err = d.Survey(t.Context(), before, 0)
		require.NoError(t, err)
	}
	require.Positive(t, committed)
	require.Less(t, committed, 30)
}

func TestAReadEndsWithItsContext(t *testing.T) {
	d := in(t)
	m := kept(t, d, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	_, err := d.Survey(ctx, m, 0)
	require.ErrorIs(t, err, stop)
}

func TestAManifestIsReadable(t *testing.T) {
	d := in(t)
	m := kept(t, d, 0)
	text, err := os.ReadFile(filepath.Join(d.Files.String(), m.Name, manifestName))
	require.NoError(t, err)
	var is map[string]any
	require.NoError(t, json.Unmarshal(bytes.TrimSpace(text), &is))
	require.Equal(t, "lb", is["prefix"])
	require.Equal(t, "2026-11-25T19:00:00Z", is["began"])
	file := is["files"].([]any)[0].(map[string]any)
	require.EqualValues(t, 6, file["rows"])
}
