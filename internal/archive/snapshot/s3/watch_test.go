package s3

import (
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slow takes a while for each read.
type slow struct {
	io.Reader

	takes time.Duration
}

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(s.takes)
	return s.Reader.Read(p)
}

func fifty() io.Reader { return iotest.OneByteReader(io.LimitReader(zeros{}, 50)) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// What is uploaded comes from Redis, and what is read goes there: a Redis that is away for a while isn't a
// service that is silent.
func TestOnlyTheServiceIsWaitedForInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t.Context())
		defer w.end()
		_, err := io.Copy(io.Discard, &source{w, slow{fifty(), 2 * stallTime}})
		require.NoError(t, err)
		require.NoError(t, w.Err())
		time.Sleep(stallTime - time.Second)
		synctest.Wait()
		require.NoError(t, w.Err())
		time.Sleep(2 * time.Second) // nothing is asked for any more, and nothing is sent
		synctest.Wait()
		require.ErrorIs(t, w.cause(w.Err()), errStalled)
	})
	synctest.Test(t, func(t *testing.T) {
		w := watch(t.Context())
		o := &object{w, io.NopCloser(slow{fifty(), stallTime - time.Second})}
		for range 50 {
			_, err := io.ReadFull(o, make([]byte, 1))
			require.NoError(t, err)
			time.Sleep(2 * stallTime)
		}
		require.NoError(t, w.Err())
		require.NoError(t, o.Close())
	})
	synctest.Test(t, func(t *testing.T) {
		w := watch(t.Context())
		o := &object{w, io.NopCloser(untilEnd{w})}
		_, err := o.Read(make([]byte, 1))
		require.ErrorIs(t, err, errStalled)
		require.NoError(t, o.Close())
	})
}

// untilEnd is the body of an answer, which ends with its context.
type untilEnd struct{ *watched }

func (u untilEnd) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}
