// Package filestest is what every place for snapshots has to do: tests run it on each of them.
package filestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/snapshot"
)

const (
	name  = "20261125T190000Z-aaaaaaaa/shard-0"
	other = "20261125T190000Z-aaaaaaaa/manifest.json"
)

var errWriter = errors.New("the writer has failed")

// Run runs it on places that nothing was written to.
func Run(t *testing.T, empty func(t *testing.T) snapshot.Files) {
	t.Helper()
	for what, test := range map[string]func(*testing.T, snapshot.Files){
		"a file is read as it was written":     readAsWritten,
		"a file that isn't there is named so":  absent,
		"a file that fails isn't there":        failed,
		"a file that ends with EOF isn't cut":  endsEarly,
		"a write ends with its context":        endsWithContext,
		"files are written side by side":       sideBySide,
		"what is old and unfinished goes":      sweeps,
		"removing what isn't there is nothing": removesNothing,
	} {
		t.Run(what, func(t *testing.T) { test(t, empty(t)) })
	}
}

func bytesOf(n int, seed uint64) []byte {
	all := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = random.Read(all)
	return all
}

// Put writes a file in pieces of odd sizes.
func Put(t testing.TB, f snapshot.Files, name string, content []byte) {
	t.Helper()
	require.NoError(t, f.Write(t.Context(), name, func(w io.Writer) error {
		for len(content) > 0 {
			n := min(len(content), 77_777)
			if _, err := w.Write(content[:n]); err != nil {
				return err
			}
			content = content[n:]
		}
		return nil
	}))
}

// Get reads a file.
func Get(t testing.TB, f snapshot.Files, name string) []byte {
	t.Helper()
	from, err := f.Open(t.Context(), name)
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	all, err := io.ReadAll(from)
	require.NoError(t, err)
	return all
}

// Names are those of all files, sorted.
func Names(t testing.TB, f snapshot.Files) (all []string) {
	t.Helper()
	files, err := f.List(t.Context())
	require.NoError(t, err)
	for _, is := range files {
		all = append(all, is.Name)
	}
	slices.Sort(all)
	return all
}

func readAsWritten(t *testing.T, f snapshot.Files) {
	t.Helper()
	require.Empty(t, Names(t, f))
	for i, size := range []int{1, 77, 100_000, 20<<20 + 1} {
		name := fmt.Sprintf("20261125T19000%dZ-aaaaaaaa/shard-0", i)
		want := bytesOf(size, uint64(i)) //nolint:gosec // small
		Put(t, f, name, want)
		require.True(t, bytes.Equal(want, Get(t, f, name)), "%d bytes", size)
		files, err := f.List(t.Context())
		require.NoError(t, err)
		at := slices.IndexFunc(files, func(is snapshot.FileInfo) bool { return is.Name == name })
		require.GreaterOrEqual(t, at, 0)
		require.EqualValues(t, size, files[at].Bytes)
		require.WithinDuration(t, time.Now(), files[at].Written, time.Minute)
	}
	require.Len(t, Names(t, f), 4)
	require.NoError(t, f.Remove(t.Context(), "20261125T190002Z-aaaaaaaa/shard-0"))
	require.Len(t, Names(t, f), 3)
}

func absent(t *testing.T, f snapshot.Files) {
	t.Helper()
	_, err := f.Open(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, f.String()+"/"+name)
	Put(t, f, other, []byte("x"))
	_, err = f.Open(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func failed(t *testing.T, f snapshot.Files) {
	t.Helper()
	for _, size := range []int{0, 1000, 20 << 20} {
		err := f.Write(t.Context(), name, func(w io.Writer) error {
			if _, err := w.Write(bytesOf(size, 1)); err != nil {
				return err
			}
			return errWriter
		})
		require.ErrorIs(t, err, errWriter)
		require.Empty(t, Names(t, f))
		_, err = f.Open(t.Context(), name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	Put(t, f, name, []byte("now")) // what failed is in nobody's way
	require.Equal(t, "now", string(Get(t, f, name)))
}

func endsEarly(t *testing.T, f snapshot.Files) {
	t.Helper()
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		err := f.Write(t.Context(), name, func(w io.Writer) error {
			if _, err := w.Write(bytesOf(1000, 1)); err != nil {
				return err
			}
			return end
		})
		require.ErrorIs(t, err, end)
		require.Empty(t, Names(t, f))
	}
}

func endsWithContext(t *testing.T, f snapshot.Files) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	err := f.Write(ctx, name, func(w io.Writer) error {
		for i := 0; ; i++ {
			if _, err := w.Write(bytesOf(1<<20, 1)); err != nil {
				return err
			}
			if i == 10 {
				cancel(stop)
			}
			require.Less(t, i, 1000)
		}
	})
	require.ErrorIs(t, err, stop)
	require.Empty(t, Names(t, f))
}

func sideBySide(t *testing.T, f snapshot.Files) {
	t.Helper()
	done := make(chan error, 4)
	for i := range 4 {
		go func() {
			done <- f.Write(t.Context(), fmt.Sprintf("20261125T19000%dZ-aaaaaaaa/shard-0", i), func(w io.Writer) error {
				_, err := w.Write(bytesOf(9<<20, uint64(i))) //nolint:gosec // small
				return err
			})
		}()
	}
	for range 4 {
		require.NoError(t, <-done)
	}
	for i := range 4 {
		require.True(t, bytes.Equal(bytesOf(9<<20, uint64(i)), Get(t, f, fmt.Sprintf("20261125T19000%dZ-aaaaaaaa/shard-0", i)))) //nolint:gosec // small
	}
}

// sweeps has a writer whose process dies, for all that others see of it: it never goes on.
func sweeps(t *testing.T, f snapshot.Files) {
	t.Helper()
	Put(t, f, other, []byte("whole"))
	begun, dies, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- f.Write(t.Context(), name, func(w io.Writer) error {
			_, err := w.Write(bytesOf(18<<20, 1))
			close(begun)
			<-dies
			return err
		})
	}()
	<-begun
	require.NoError(t, f.Sweep(t.Context(), time.Now().Add(-time.Hour)))
	require.Equal(t, []string{other}, Names(t, f))
	require.NoError(t, f.Sweep(t.Context(), time.Now().Add(time.Hour)))
	close(dies)
	require.Error(t, <-ended, "what it wrote is gone")
	require.Equal(t, []string{other}, Names(t, f))
	require.Equal(t, "whole", string(Get(t, f, other)))
}

func removesNothing(t *testing.T, f snapshot.Files) {
	t.Helper()
	require.NoError(t, f.Remove(t.Context(), name))
	require.NoError(t, f.Sweep(t.Context(), time.Now()))
	require.Empty(t, Names(t, f))
}
