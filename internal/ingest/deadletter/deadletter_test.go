package deadletter

import (
	"math"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Read returns exactly what append wrote, whatever headers the original has, including those of a dead letter.
func TestTheHeadersOfADeadLetterAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var original []kafka.Header
		for range rapid.IntRange(0, 9).Draw(t, "headers") {
			key := rapid.OneOf(rapid.SampledFrom(append(always[:], HeaderEventID, HeaderLastOffset, HeaderDropped)), rapid.String()).Draw(t, "key")
			original = append(original, kafka.Header{Key: key, Value: []byte(rapid.String().Draw(t, "value"))})
		}
		o := Origin{
			Reason: rapid.StringMatching(`[a-z][a-z_]{0,31}`).Draw(t, "reason"), Message: rapid.String().Draw(t, "message"),
			Topic: rapid.String().Draw(t, "topic"), Partition: int(rapid.Int32Min(0).Draw(t, "partition")),
			Offset: rapid.Int64Min(0).Draw(t, "offset"), Time: rapid.Int64().Draw(t, "time"),
			EventID: rapid.String().Draw(t, "id"),
		}
		o.Last = o.Offset + min(int64(rapid.Int32Min(0).Draw(t, "records after the first")), math.MaxInt64-o.Offset)
		id := []byte(o.EventID)
		if o.EventID == "" {
			id = nil
		}
		read, left, err := Read(o.append(original[:len(original):len(original)], id))
		require.NoError(t, err)
		require.Equal(t, o, read)
		require.Len(t, left, len(original))
		for i := range original {
			require.Equal(t, original[i], left[i])
		}
	})
}
