package ingest

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ingest/start"
)

// The broker is queried for the first offset of a time, and its answer would omit half of the log. As long as
// the log's first record has no time, this answer isn't used.
func TestALogWithoutTimesIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]start.Where{
		"window": {From: start.FromWindow},
		"a time": {From: start.FromTime, Time: time.Now().Add(-time.Hour)},
	} {
		for timed, first := range map[bool]int64{false: 0, true: 5} {
			w := newWorld(t, 1)
			for i, e := range some("a", 10, 5) {
				if int64(i) >= first {
					w.counts(e)
				}
				value, err := json.Marshal(e)
				require.NoError(t, err)
				at := time.Now()
				switch {
				case i < 5 && timed:
					at = at.AddDate(-5, 0, 0)
				case i < 5: // from a producer older than Kafka 0.10
					at = time.UnixMilli(-1)
				}
				r := &kgo.Record{Value: value, Timestamp: at}
				require.NoError(t, w.client.ProduceSync(context.Background(), r).FirstErr())
			}
			w.worker(0, func(c *Config) { c.Start = where })
			w.reaches(0)
			w.standings.do(func() {
				require.Regexp(t, "^"+strconv.FormatInt(first, 10)+" ", w.standings.origin(t, w.config.Topics[0]+"/0"), name)
			})
		}
	}
}
