package check

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/recovery"
)

func TestWhatWouldBringTheStandingsBackAndSinceWhen(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2100, 3, 9, hour, 0, 0, 0, time.UTC) }
	note := func(by recovery.By) ranking.RecoveryNote {
		return ranking.RecoveryNote{By: string(by), Since: at(1), Looked: at(2)}
	}
	none := config.Defaults()
	some := config.Defaults()
	some.Snapshots.URL = "dir:/backups"
	lost := recovery.Verdict{By: recovery.Nothing, WhyNotLog: "the log begins too late"}
	neither := lost
	neither.WhyNotSnapshot = "the snapshot s doesn't do: it is of another schema"
	for _, c := range []struct {
		v    recovery.Verdict
		note ranking.RecoveryNote
		cfg  *config.Config
		want string
	}{
		{recovery.Verdict{By: recovery.Log}, note(recovery.Log), none, "ok: the log alone would bring the standings back, since 2100-03-09T01:00:00Z"},
		{recovery.Verdict{By: recovery.Log}, note(recovery.Nothing), none, "ok: the log alone would bring the standings back, since after 2100-03-09T02:00:00Z"},
		{recovery.Verdict{By: recovery.Log}, ranking.RecoveryNote{}, none, "ok: the log alone would bring the standings back (since when isn't known: no consumer has looked)"},
		{
			recovery.Verdict{By: recovery.Snapshot, Name: "s", Began: at(0)}, note(recovery.Snapshot), some,
			"ok: the snapshot s and the log since 2100-03-09T00:00:00Z would bring the standings back, since 2100-03-09T01:00:00Z",
		},
		{
			lost, note(recovery.Nothing), none,
			"warning: points would be lost, since 2100-03-09T01:00:00Z: the log begins too late → set snapshots.url (docs/snapshots.md), or have Kafka keep the log for as long as windows live, or back up Redis",
		},
		{
			lost, note(recovery.Snapshot), some,
			"warning: points would be lost, since after 2100-03-09T02:00:00Z: the log begins too late; and there is no whole snapshot → see docs/operations.md, No snapshot is taken; consumer snapshot take takes one now",
		},
		{
			neither, ranking.RecoveryNote{}, some,
			"warning: points would be lost (since when isn't known: no consumer has looked): the log begins too late; and the snapshot s doesn't do: it is of another schema → " +
				"take a snapshot now (consumer snapshot take), and have the log kept for longer than snapshots.interval and what one takes",
		},
	} {
		require.Equal(t, c.want, foundIn(judgeRecovery(&recoveryFacts{c.v, c.note}, nil, c.cfg), "if Redis is lost"))
	}
	require.Equal(t, "not checked: Kafka is away", foundIn(judgeRecovery(nil, errors.New("Kafka is away"), none), "if Redis is lost"))
}
