package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/memory"
)

// largest returns a valid event of exactly size bytes that doesn't compress.
func largest(t *testing.T, size int) []byte {
	t.Helper()
	v, err := json.Marshal(earned{User: "a", Points: 5, At: 946_684_790_000}) // bubbles begin ten seconds later
	require.NoError(t, err)
	v = append(v[:len(v)-1], `,"pad":"`...)
	rnd := rand.New(rand.NewPCG(1, 2))
	for len(v) < size-2 {
		v = append(v, " !#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"[rnd.IntN(93)])
	}
	return append(v, `"}`...)
}

// With the smallest fold_memory, every partition reads its log while others hold all memory except one turn,
// with any compression and with batches of any size.
func TestEveryPartitionReadsTheLargestBatchesInTheLeastMemoryHoweverTheyAreCompressed(t *testing.T) {
	oneShard(t, "what reading takes is the same for any number of shards")
	const partitions, each = 3, 2
	single, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithWindowSize(8<<20))
	require.NoError(t, err)
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(8<<20))
	require.NoError(t, err)
	by := func(codec int) func([]byte) []byte { return func(b []byte) []byte { return compressed(codec, b) } }
	ways := []struct {
		name   string
		codec  int
		encode func([]byte) []byte
	}{
		{"none", 0, by(0)}, {"gzip", 1, by(1)}, {"snappy", 2, by(2)}, {"lz4", 3, by(3)}, {"zstd", 4, by(4)},
		{"snappy in one block", 2, func(b []byte) []byte { return s2.EncodeSnappy(nil, b) }},
		{"zstd in one segment", 4, func(b []byte) []byte { return single.EncodeAll(b, nil) }},
		{"zstd with a window of 8 MiB", 4, func(b []byte) []byte { return wide.EncodeAll(b, nil) }},
	}
	for _, size := range []int{1 << 20, 3 << 20} {
		foldMemory := memory.LeastMemory(int64(size))
		room := int(memory.LargestBatch(foldMemory)) - 8<<10 // for headers and the overhead of compression
		var full []int
		for left := room; left > 1<<10; left -= min(left, size) {
			full = append(full, min(left, size)-100)
		}
		event := largest(t, size)
		for _, way := range ways {
			for shape, sizes := range map[string][]int{
				"a full batch": full, "events that grow": {min(size*79/100, room-size), size - 100}, "many that inflate": {size - 200<<10},
			} {
				if shape == "many that inflate" && way.codec == 0 || size > 1<<20 && shape != "a full batch" {
					continue
				}
				t.Run(fmt.Sprint(way.name, " ", size, " ", shape), func(t *testing.T) {
					var raw []byte
					n := 0
					add := func(v []byte) {
						r := kmsg.Record{Value: v, OffsetDelta: int32(n)}
						r.Length = int32(len(r.AppendTo(nil)) - 1)
						raw = r.AppendTo(raw)
						n++
					}
					for _, size := range sizes {
						add(append(bytes.Clone(event[:size-2]), `"}`...))
					}
					for small := largest(t, 100); shape == "many that inflate" && n < 20_000; {
						add(small)
					}
					encoded := way.encode(raw)
					if way.name == "snappy in one block" && int64(len(raw)+2*len(encoded)) > memory.LargestCodec(foldMemory, int64(size)) {
						return // it would be passed over
					}
					require.Less(t, len(encoded), int(memory.LargestBatch(foldMemory)))
					// kafka-go pools zstd decoders, and those of another bubble can't be used here.
					runtime.GC()
					runtime.GC()
					synctest.Test(t, func(t *testing.T) {
						b := newBubble(t, partitions, func(c *Config) { c.Events.MaxEventBytes, c.FoldMemory = size, foldMemory })
						hog := b.consumer.Budget.Account()
						require.True(t, hog.Take(b.consumer.Budget.Total()-b.consumer.Budget.Reserve()))
						stop := b.run()
						defer stop()
						for p := range partitions {
							for range each {
								b.logs.addRaw(int32(p), way.codec, n, encoded)
								b.want += int64(n)
							}
						}
						b.counts(30 * time.Second)
						hog.Release(hog.Held())
					})
				})
			}
		}
	}
}
