package reading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
)

// Each step removes the condition of the state before, and all conditions of later states still apply.
func TestAWindowsStateIsTheFirstThatApplies(t *testing.T) {
	refilled := []workers.Refilling{{Field: "points/3", To: 9}}
	reported := func(field, reason string) []workers.Reported {
		return []workers.Reported{{Field: field, Line: workers.Line{Reason: reason}}}
	}
	v := View{
		Board: ranking.Board{Lost: ranking.LostBoard, Incomplete: []string{"points/0"}}, Archived: true,
		Progress: workers.Progress{
			Halted: reported("points/0", "gap"), Waiting: reported("points/1", "redis_full"), Blocked: reported("points/2", "transaction"),
			Silent: reported("points/3", ""), NotBegun: []string{"extra"}, Unread: true, Behind: time.Hour,
		},
	}
	require.False(t, v.Complete())
	for _, step := range []struct {
		state, is string
		next      func()
	}{
		{StateLost, "lost", func() { v.Lost = "" }},
		{StateEmpty, "empty", func() { v.Listed = true }},
		{StateBackup, "backup", func() { v.Revision = 1 }},
		{StateArchived, "archived", func() { v.Archived, v.Refilling = false, refilled }},
		{StateRefilling, "refilling", func() { v.Refilling = nil }},
		{StateIncomplete, "incomplete", func() { v.Incomplete = nil }},
		{StateStalled, "stalled", func() { v.Halted, v.Waiting, v.Blocked, v.Silent = nil, nil, nil, nil }},
		{StateLagging, "lagging", func() { v.NotBegun = nil }},
		{StateLagging, "lagging", func() { v.Unread = false }},
		{StateLagging, "lagging", func() { v.Behind = 0 }},
		{StateCurrent, "current", nil},
	} {
		require.Equal(t, step.is, step.state)
		require.Equal(t, step.state, v.State())
		if step.state == StateStalled {
			require.True(t, v.Complete())
			require.Equal(t, []StalledPartition{{"points/0", "gap"}, {"points/1", "redis_full"}, {"points/2", "transaction"}, {"points/3", NoConsumer}}, v.Stalled())
		}
		if step.next != nil {
			step.next()
		}
	}
	require.Empty(t, v.Stalled())
	v.Listed, v.Refilling = false, refilled
	require.Equal(t, StateRefilling, v.State(), "its events may be in the log")
}
