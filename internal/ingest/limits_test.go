package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// largest is a good event of exactly so many bytes that doesn't compress.
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

// With the least fold_memory that max_event_bytes is taken with, an event of that size
// counts, however it is compressed.
func TestTheLargestEventCountsInTheLeastMemoryHoweverItIsCompressed(t *testing.T) {
	one := func(v []byte) []byte {
		r := kmsg.Record{Value: v, Key: bytes.Repeat([]byte("k"), 60<<10)}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // a length of 0 takes one byte
		return r.AppendTo(nil)
	}
	single, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithWindowSize(8<<20))
	require.NoError(t, err)
	ways := []struct {
		name   string
		codec  int
		encode func([]byte) []byte
	}{
		{"none", 0, nil}, {"gzip", 1, nil}, {"snappy", 2, nil}, {"lz4", 3, nil}, {"zstd", 4, nil},
		{"snappy in one block", 2, func(b []byte) []byte { return s2.EncodeSnappy(nil, b) }},
		{"zstd in one segment", 4, func(b []byte) []byte { return single.EncodeAll(b, nil) }},
	}
	for _, size := range []int{1 << 20, 6 << 20} {
		for _, way := range ways {
			t.Run(fmt.Sprint(way.name, " ", size), func(t *testing.T) {
				raw := one(largest(t, size))
				if way.encode == nil {
					raw = compressed(way.codec, raw)
				} else {
					raw = way.encode(raw)
				}
				synctest.Test(t, func(t *testing.T) {
					b := newBubble(t, 1, func(c *Config) {
						c.Events.MaxEventBytes = size
						c.FoldMemory = LeastMemory(int64(size))
					})
					stop := b.run()
					defer stop()
					b.logs.addRaw(0, way.codec, 1, raw)
					b.want++
					b.counts(time.Minute)
				})
			})
		}
	}
}
