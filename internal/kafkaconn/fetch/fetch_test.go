package fetch

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

func TestEveryRecordIsFetchedOnceAndInOrder(t *testing.T) {
	address := fake(t)
	values := numbered("v", 200)
	produce(t, client(t, address), values...)
	f, _, _ := fetcher(t, address)
	f.MaxBytes = 2000 // several fetches, most of which end in a batch that is cut off
	got, next := follow(t, f, 0)
	if !slices.Equal(got, values) || next != 200 {
		t.Fatalf("next %d: %v", next, got)
	}
}

func TestEveryVersionFromFourOnIsUnderstood(t *testing.T) {
	for version := int16(oldest); version <= 13; version++ {
		v := kversion.Stable()
		v.SetMaxKeyVersion(1, version)
		address := fake(t, kfake.MaxVersions(v))
		produce(t, client(t, address), "a", "b")
		f, _, _ := fetcher(t, address)
		if got, _ := follow(t, f, 0); len(got) != 2 {
			t.Errorf("version %d: %v", version, got)
		}
		if want := min(version, newest); f.exchange.version != want {
			t.Errorf("version %d was spoken, and should be %d", f.exchange.version, want)
		}
	}
}

func TestABatchLargerThanWhatIsAskedForComesWhole(t *testing.T) {
	address := fake(t)
	large := strings.Repeat("x", 900_000)
	produce(t, client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression())), "a", large, "b")
	f, _, _ := fetcher(t, address)
	f.MaxBytes = 1000
	if got, next := follow(t, f, 0); next != 3 || !slices.Equal(got, []string{"a", large, "b"}) {
		t.Fatalf("%d records, next %d", len(got), next)
	}
}

func TestWhatTheBrokerRefusesIsInTheResponse(t *testing.T) {
	address := fake(t)
	f, _, _ := fetcher(t, address)
	res, err := f.Fetch(t.Context(), 99)
	if err != nil || !errors.Is(res.Err, kafka.OffsetOutOfRange) {
		t.Fatalf("%+v: %v", res, err)
	}
	f.Partition = 7
	if _, err := f.Fetch(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "fetch events/7 at 0: ") {
		t.Fatalf("a partition that isn't there: %v", err)
	}
}

func TestWithoutMemoryTheResponseIsReadPastAndTheConnectionKept(t *testing.T) {
	address := fake(t)
	produce(t, client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression())), strings.Repeat("x", 100_000))
	f, g, m := fetcher(t, address)
	m.limit = 50_000
	if res, err := f.Fetch(t.Context(), 1); err != nil || res.Err != nil {
		t.Fatal(err)
	}
	const refusals = 30
	dials := g.dials.Load()
	for range refusals {
		_, err := f.Fetch(t.Context(), 0)
		if size := new(SizeError); !errors.Is(err, ErrNoMemory) || !errors.As(err, &size) || size.Bytes < 1000 {
			t.Fatal(err)
		}
		require.Zero(t, m.now(), "bytes are held after a refusal")
	}
	m.limit = 1 << 20
	if got, _ := follow(t, f, 0); len(got) != 1 {
		t.Fatalf("%d records", len(got))
	}
	// A transport may answer before it has its connection back, so a call right after another sometimes
	// finds no free connection.
	if n := g.dials.Load() - dials; n > refusals/3 {
		t.Fatalf("%d new connections after %d refusals", n, refusals)
	}
}

func TestABatchAboveTheLimitIsReadPastAndTheConnectionKept(t *testing.T) {
	address := fake(t)
	c := client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression()))
	produce(t, c, "before")
	produce(t, c, strings.Repeat("x", 900_000))
	produce(t, c, "after")
	f, g, m := fetcher(t, address)
	f.MaxBytes, f.MaxBatch = 1000, 50_000
	follow(t, f, 0)
	const times = 30
	dials := g.dials.Load()
	for range times {
		if got, next := follow(t, f, 0); next != 3 || !slices.Equal(got, []string{"before", "", "after"}) {
			t.Fatalf("next %d: %.300q", next, got)
		}
	}
	// A call right after another sometimes finds no free connection, as above.
	if n := g.dials.Load() - dials; n > times/3 || m.most > 50_000+Beside+small {
		t.Fatalf("%d new connections, %d bytes taken", n, m.most)
	}
	f.MaxBatch = 0
	if got, _ := follow(t, f, 0); len(got[1]) != 900_000 {
		t.Fatalf("%.300q", got)
	}
}

func TestAnIdlePartitionHoldsNothing(t *testing.T) {
	address := fake(t)
	c := client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 4 {
		produce(t, c, strings.Repeat("x", 600_000))
	}
	f, _, m := fetcher(t, address)
	var first *byte
	for offset := range int64(3) { // behind the log's end: one buffer for all
		res, err := f.Fetch(t.Context(), offset)
		require.NoError(t, err)
		res.Release()
		if held := m.now(); held < 600_000 || held > 1_300_000 {
			t.Fatalf("%d bytes are held between two large responses", held)
		}
		if p := &f.exchange.buf[0]; first == nil {
			first = p
		} else if p != first {
			t.Fatal("the buffer was not used again")
		}
	}
	produce(t, c, strings.Repeat("y", 20_000))
	produce(t, c, "a little")
	for _, offset := range []int64{4, 5, 6} { // at the log's end: a small response, then nothing
		res, err := f.Fetch(t.Context(), offset)
		require.NoError(t, err)
		if res.More() {
			t.Fatalf("at offset %d there is more", offset)
		}
		res.Release()
		if held := m.now(); held != 0 {
			t.Fatalf("%d bytes are held by an idle partition", held)
		}
	}
}

func TestACallEndsWithItsContextWhileTheBrokerWaits(t *testing.T) {
	address := fake(t)
	f, _, m := fetcher(t, address)
	f.MaxWait = 15 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := f.Fetch(ctx, 0)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) >= f.MaxWait {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
	require.Zero(t, m.now(), "bytes are held")
	produce(t, client(t, address), "what the broker waits for")
}

// The race described in exchange.go: the call is over, and the connection still writes into its buffer.
func TestABufferThatAConnectionMayStillWriteToIsNotUsedAgain(t *testing.T) {
	address := fake(t)
	a, b := strings.Repeat("a", 300_000), strings.Repeat("b", 300_000)
	produce(t, client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression())), a, b)
	f, g, m := fetcher(t, address)
	f.MaxBytes = 1000

	stuck := g.close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-stuck
		cancel()
	}()
	if _, err := f.Fetch(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	given := m.now()
	if given < 300_000 {
		t.Fatalf("%d bytes are held by an exchange that goes on", given)
	}
	impatient, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := f.Drop(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("what is held was dropped: %v", err)
	}

	g.mu.Lock()
	old := g.shut
	g.shut = nil // new reads pass, the old one stays blocked
	g.mu.Unlock()
	res, err := f.Fetch(t.Context(), 1)
	require.NoError(t, err)
	if m.now() < 2*300_000 {
		t.Fatalf("%d bytes are held by two buffers", m.now())
	}
	close(old) // the old connection writes all of its response
	abandoned := f.given[0]
	<-abandoned.over
	if !bytes.Contains(res.Records, []byte(b)) {
		t.Fatal("the response was overwritten")
	}
	res.Release()
	if err := f.Drop(t.Context()); err != nil || m.now() != 0 {
		t.Fatalf("%d bytes are held: %v", m.now(), err)
	}
}

func TestAServerThatSaysNothingHoldsACallForItsDeadlineAlone(t *testing.T) {
	f, _, _ := fetcher(t, silence(t))
	f.MaxWait = 100 * time.Millisecond
	began := time.Now()
	_, err := f.Fetch(t.Context(), 0)
	if took := time.Since(began); err == nil || took > f.MaxWait+Grace+20*time.Second {
		t.Fatalf("after %s: %v", took, err)
	}
}

func TestAnExchangeThatWasGivenUpBeforeItBeganDoesNothing(t *testing.T) {
	x := newExchange()
	if x.endCall() != unstarted {
		t.Fatal("it has begun")
	}
	if _, err := x.RawExchange(nil); !errors.Is(err, errGivenUp) {
		t.Fatal(err)
	}
}

func TestABrokerOfBeforeTransactionsIsRefusedByItsVersion(t *testing.T) {
	x := newExchange()
	x.Required(nil)
	if _, err := x.RawExchange(nil); !errors.Is(err, ErrVersion) {
		t.Fatal(err)
	}
	x = newExchange()
	x.version = 3
	if _, err := x.RawExchange(nil); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 3") {
		t.Fatal(err)
	}
}
