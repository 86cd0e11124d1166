package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kbin"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

func bad(offset int64, value []byte) *recordbatch.Record {
	return &recordbatch.Record{Offset: offset, Time: 1, Value: value}
}

// with adds headers to a record: key, value, key, value, ….
func with(r *recordbatch.Record, headers ...string) *recordbatch.Record {
	for _, text := range headers {
		r.Headers = append(kbin.AppendVarint(r.Headers, int32(len(text))), text...)
	}
	r.HeaderCount = len(headers) / 2
	return r
}

func TestADeadLetterIsTheOriginalWithItsReasonAndSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := w.writer()
	require.NoError(t, to.Add(t.Context(), with(&recordbatch.Record{Offset: 7, Time: 1234, Key: []byte("k"), Value: []byte("v")}, "trace", "abc"),
		[]byte("id"), event.Invalid, "points: it isn't an integer"))
	require.NoError(t, to.Flush(t.Context()))
	l := w.all(1)[0]
	require.Equal(t, "k", string(l.Key))
	require.Equal(t, "v", string(l.Value))
	require.WithinDuration(t, time.Now(), l.Timestamp, time.Minute, "of its writing")
	require.Equal(t, map[string]string{
		"trace": "abc", "standings-reason": "invalid", "standings-message": "points: it isn't an integer", "standings-event-id": "id",
		"standings-topic": topic, "standings-partition": "0", "standings-offset": "7", "standings-timestamp": "1234",
	}, headers(l))
	require.Equal(t, int64(1), w.outbox.Count.Load())
}

func TestADeadLetterThatIsTooLargeGoesWithoutItsValueAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answer(func(size int) int16 {
		if size > 2000 {
			return 10 // MESSAGE_TOO_LARGE
		}
		return 0
	})
	incompressible := make([]byte, 4000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(incompressible)
	require.NoError(t, w.write(w.writer(), bad(0, []byte("small")), bad(1, incompressible), bad(2, []byte("also small"))))
	for i, l := range w.all(3) {
		require.Equal(t, strconv.Itoa(i), headers(l)[HeaderOffset])
		if i == 1 {
			require.Nil(t, l.Value)
			require.Contains(t, headers(l)[HeaderMessage], "without its value")
			require.Contains(t, headers(l)[HeaderMessage], "source offset")
			continue
		}
		require.Contains(t, string(l.Value), "small")
		require.NotContains(t, headers(l)[HeaderMessage], "without")
	}
}

// Codes 32 and 87 do not concern the dead letter's size: nothing of it is left out.
func TestADeadLetterThatTheTopicIsNotMadeForHaltsAndNamesTheCause(t *testing.T) {
	t.Parallel()
	for code, remedy := range map[int16]string{10: "max.message.bytes", 32: "clock", 87: "cleanup.policy=delete"} {
		t.Run(remedy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer := code
			w.answer(func(int) int16 { return answer })
			halt := new(health.Halt)
			require.ErrorAs(t, w.write(w.writer(), bad(0, []byte("bad"))), &halt)
			require.Equal(t, health.HaltKafka, halt.Reason)
			require.Contains(t, halt.Remedy, remedy)
			answer = 0
			require.NoError(t, w.outbox.Retry(t.Context(), func(error) {}))
			l := w.all(1)[0]
			require.Equal(t, code != 10, string(l.Value) == "bad")
			require.Equal(t, code != 10, headers(l)[HeaderMessage] == "bad")
		})
	}
}

// A batch whose dead letters were not written must not be swept.
func TestAfterAFailedWriteEveryFlushFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection was lost")
	w := &Writer{failed: lost}
	require.ErrorIs(t, w.Flush(t.Context()), lost)
	w.Forget()
	require.ErrorIs(t, w.Flush(t.Context()), lost)
}

func TestOfManyHeadersTheFirstAreCopiedAndTheOthersCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := with(bad(0, []byte("bad")), make([]string, 2*50_000)...)
	large := with(bad(1, []byte("bad")), "small", "v", "large", string(bytes.Repeat([]byte("x"), maxHeaderBytes)))
	require.NoError(t, w.write(w.writer(), many, large))
	deadLetters := w.all(2)
	require.Equal(t, fmt.Sprint(50_000-maxHeaders), headers(deadLetters[0])[HeaderDropped])
	require.Equal(t, "1", headers(deadLetters[1])[HeaderDropped])
	require.Equal(t, "v", headers(deadLetters[1])["small"])
	require.NotContains(t, headers(deadLetters[1]), "large")
}

// Similar records take a small part of their original bytes on the wire.
func TestDeadLettersAreCompressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wire := 0
	w.answer(func(size int) int16 { wire += size; return 0 })
	var records []*recordbatch.Record
	for i := range int64(300) {
		records = append(records, bad(i, bytes.Repeat([]byte("x"), 40_000)))
	}
	require.NoError(t, w.write(w.writer(), records...))
	w.all(300)
	require.Less(t, wire, 300*40_000/50)
}
