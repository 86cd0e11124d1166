package check

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ledger"
)

func TestOneLineSaysWhatALossOfRedisWouldCost(t *testing.T) {
	t.Parallel()
	at := func(day, hour int) int64 { return time.Date(2100, 3, day, hour, 0, 0, 0, time.UTC).UnixMilli() }
	window := func(board, period, name string, start int64) ledger.Window {
		return ledger.Window{Board: board, Period: period, Name: name, Start: start}
	}
	windows := []ledger.Window{
		window("global", "weekly", "2100-W10", at(8, 0)), window("global", "monthly", "2100-03", at(1, 0)),
		window("eu", "monthly", "2100-03", at(1, 0)), window("global", "yearly", "2100", at(-58, 0)),
	}
	for _, c := range []struct {
		reach   locate.Reach
		windows []ledger.Window
		want    string
	}{
		{locate.Reach{}, windows, "ok: the log reaches back to its first event, and covers all live windows; a backup may be of any age"},
		{locate.Reach{Since: at(2, 0), Complete: at(2, 1)}, windows[:1], "ok: the log reaches back 7d3h, to 2100-03-02T00:00:00Z, and covers all live windows; a backup may be at most 7d3h old"},
		{locate.Reach{Since: at(2, 0), Complete: at(2, 1)}, nil, "ok: the log reaches back 7d3h, to 2100-03-02T00:00:00Z, and covers all live windows; a backup may be at most 7d3h old"},
		{
			locate.Reach{Since: at(8, 0), Complete: at(8, 0)}, windows,
			"warning: the log reaches back 27h0m, to 2100-03-08T00:00:00Z, and does not cover yearly 2100, monthly 2100-03; a backup may be at most 27h0m old → " +
				"keep backups of Redis that are not older (docs/recovery.md), or have Kafka keep the log for longer",
		},
		{ // this machine's clock is ahead of Redis's
			locate.Reach{Since: at(9, 4), Complete: at(9, 5)}, windows[:1],
			"warning: the log reaches back 0, to 2100-03-09T04:00:00Z, and does not cover weekly 2100-W10; a backup may be at most 0 old → " +
				"keep backups of Redis that are not older (docs/recovery.md), or have Kafka keep the log for longer",
		},
	} {
		require.Equal(t, c.want, foundIn(judgeLoss(&lossFacts{c.reach, c.windows, time.UnixMilli(at(9, 3))}, nil), "if Redis is lost"))
	}
	require.Equal(t, "not checked: Kafka is away", foundIn(judgeLoss(nil, errors.New("Kafka is away")), "if Redis is lost"))
}
