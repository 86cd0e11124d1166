package start

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Events counted before Redis was lost are below the log's end or, if its leader does not know the end yet,
// below the committed offset.
func TestALostTopicIsRefilledUpToWhatWasCounted(t *testing.T) {
	all := []Beginning{
		{Log: kafkaconn.Log{End: 90}, Since: 40, First: First{Time: 5}, Committed: 70},
		{Log: kafkaconn.Log{End: 60}, Since: 40, First: First{Time: 5}, Committed: 70},
	}
	w := Where{FromWindow, time.UnixMilli(6)}
	set, trails, err := new(Terms).Topic("events", Recover, w, all, Judge{Now: 1000})
	require.NoError(t, err)
	require.Len(t, trails, 2)
	for p, refill := range []int64{90, 70} {
		require.Equal(t, ledger.Partition{Topic: "events", Number: p}, set[p].Partition)
		require.Equal(t, ledger.At(40), set[p].At)
		require.Equal(t, refill, set[p].Refill)
	}
	set, _, err = new(Terms).Topic("events", Begin, w, all, Judge{Now: 1000})
	require.NoError(t, err)
	require.Zero(t, set[0].Refill, "nothing was lost")
}

func TestALostTopicThatTheLogMayLackEventsOfIsAGap(t *testing.T) {
	all := []Beginning{{Log: kafkaconn.Log{Start: 10, End: 90}, Since: 40, First: First{Time: 5}}}
	w := Where{FromWindow, time.UnixMilli(6)}
	_, _, err := new(Terms).Topic("events", Recover, w, all, Judge{Now: 1000})
	halt := new(health.Halt)
	require.ErrorAs(t, err, &halt)
	require.Equal(t, health.HaltGap, halt.Reason)
	require.Contains(t, halt.What, "the log of events/0 begins only at offset 10")
	set, _, err := (&Terms{OnGap: GapContinues}).Topic("events", Recover, w, all, Judge{Now: 1000})
	require.NoError(t, err)
	require.Equal(t, int64(1001), set[0].Origin.Time, "from the moment of looking")
}
