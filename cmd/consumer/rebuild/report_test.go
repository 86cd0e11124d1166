package rebuild

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/rebuild"
)

const theWindows = `[
	{"board":"eu","period":"weekly","window":"2026-W47","start":"2026-11-16T00:00:00.000Z","end":"2026-11-23T00:00:00.000Z","fate":"replaced","why":null,"incomplete":false},
	{"board":"eu","period":"yearly","window":"2026","start":"1970-01-01T00:00:00.000Z","end":"1970-01-01T00:00:00.000Z","fate":"kept","why":"it starts before then","incomplete":false},
	{"board":"us","period":"weekly","window":"2026-W47","start":"1970-01-01T00:00:00.000Z","end":"1970-01-01T00:00:00.000Z","fate":"dropped","why":null,"incomplete":false},
	{"board":"us","period":"yearly","window":"2026","start":"1970-01-01T00:00:00.000Z","end":"1970-01-01T00:00:00.000Z","fate":"replaced","why":null,"incomplete":true}]`

func TestTheReportAsJSONHasAllOfIt(t *testing.T) {
	r := result()
	r.Plan.Starts = append(r.Plan.Starts, replay.Start{Field: "points/2", At: 7}) // added later
	text, err := json.Marshal(reportOf(r, &flags{dryRun: true, diff: true}, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"swapped":false,"dry_run":true,"refused":[],"records":2093179,"too_large":0,"took_ms":41840,"holds":1,"held_ms":17,
		"partitions":[
			{"partition":"points/0","from":0,"to":1204311,"offsets":1204311,"complete_since":null,"log_start":false,"position":"480"},
			{"partition":"points/1","from":310002,"to":1198870,"offsets":888868,"complete_since":"2026-11-21T08:15:30.123Z","log_start":true,"position":null},
			{"partition":"points/2","from":7,"to":null,"offsets":null,"complete_since":null,"log_start":false,"position":null}],
		"windows":`+theWindows+`,
		"differ":1204,"at_least":false,
		"differ_windows":[{"board":"eu","period":"weekly","window":"2026-W47","differ":1204,"only_live":1,"only_log":2}],
		"standings":[
			{"board":"eu","period":"weekly","window":"2026-W47","member":"u\u001b1","live":{"points":1025,"reached_at":"2026-11-21T08:15:30.120Z","foreign_score":null},"log":null},
			{"board":"eu","period":"weekly","window":"2026-W47","member":"u2","live":{"points":null,"reached_at":null,"foreign_score":"0.1"},"log":{"points":-3,"reached_at":"2026-11-21T08:15:30.120Z","foreign_score":null}}]}`, string(text))
}

func TestWhatIsRefusedHasTheReasonsAsJSON(t *testing.T) {
	all := reportOf(&rebuild.Result{Plan: planned()}, &flags{dryRun: true}, []string{"Redis has lost eu:yearly:2026"})
	require.Equal(t, []string{"Redis has lost eu:yearly:2026"}, all.Refused)
	require.Len(t, all.Windows, 4)
	require.Nil(t, all.Differ)
	require.Nil(t, all.AtLeast)
}

func TestTheReportOfSeveralShardsHasEachOfThem(t *testing.T) {
	r := ofThree()
	r.Shards[1].Swapped, r.Shards[1].Unsure, r.Shards[1].At = false, true, time.Time{}
	r.Shards[2] = rebuild.ShardResult{}
	all := reportOf(r, &flags{}, nil)
	require.False(t, all.Swapped)
	require.Len(t, all.Windows, 4)
	require.Equal(t, []int{1}, all.Windows[1].Shards)
	text, err := json.Marshal(all.Shards)
	require.NoError(t, err)
	const partitions = `[
		{"partition":"points/0","from":0,"to":1204311,"offsets":1204311,"complete_since":null,"log_start":false,"position":"480"},
		{"partition":"points/1","from":310002,"to":1198870,"offsets":888868,"complete_since":"2026-11-21T08:15:30.123Z","log_start":true,"position":null}]`
	require.JSONEq(t, `[
		{"shard":0,"master":"10.0.0.7:6379","swapped":true,"unsure":false,"swapped_at":"2026-11-21T08:15:30.120Z","holds":1,"held_ms":17,"partitions":`+partitions+`},
		{"shard":1,"master":"10.0.0.7:6379","swapped":false,"unsure":true,"swapped_at":null,"holds":1,"held_ms":17,"partitions":`+partitions+`},
		{"shard":2,"master":null,"swapped":false,"unsure":false,"swapped_at":null,"holds":0,"held_ms":0,"partitions":[]}]`, string(text))
}
