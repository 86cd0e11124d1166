package snapshot

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

func TestTheReportsAreDocumented(t *testing.T) {
	clitest.Documented(t, "snapshot list", listReport{})
	clitest.Documented(t, "snapshot take", snapshotReport{})
	clitest.Documented(t, "snapshot verify", verifyReport{})
}

// world is 300 members in three shards, and a directory for snapshots.
func world(t *testing.T) (environ []string, dir string) {
	t.Helper()
	w := clitest.StandingsIn(t, 3, 0)
	var members []ledger.Member
	for i := range 300 {
		members = append(members, clitest.Member(fmt.Sprint("m", i), int64(1+i), ""))
	}
	w.Add(t, "global", members...)
	_, kafka := clitest.FakeKafka(t, kfake.ClusterID("some-cluster"))
	dir = filepath.Join(t.TempDir(), "snapshots")
	return append(append(w.Environ, kafka...), "STANDINGS_SNAPSHOTS_URL=dir:"+dir), dir
}

func TestASnapshotIsTakenListedAndVerified(t *testing.T) {
	environ, dir := world(t)
	code, stdout, stderr := clitest.Execute(t, Command, environ, "snapshot", "list")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "There is no snapshot.\n", stdout)
	code, stdout, stderr = clitest.Execute(t, Command, environ, "snapshot", "verify")
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stderr, "has no whole snapshot of")

	var taken snapshotReport
	code, stdout, stderr = clitest.Execute(t, Command, environ, "snapshot", "take", "--json")
	require.Equal(t, 0, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &taken))
	require.Equal(t, int64(300), taken.Rows)
	require.Equal(t, 3, taken.Shards)
	var found listReport
	code, stdout, stderr = clitest.Execute(t, Command, environ, "snapshot", "list", "--json")
	require.Equal(t, 0, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &found))
	require.Equal(t, []snapshotReport{taken}, found.Snapshots)
	require.Equal(t, dir, found.Place)
	code, stdout, stderr = clitest.Execute(t, Command, environ, "snapshot", "verify")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, taken.Name+" is whole")

	path := filepath.Join(dir, taken.Name, "shard-1")
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	file[len(file)/2] ^= 1
	require.NoError(t, os.WriteFile(path, file, 0o600))
	code, _, stderr = clitest.Execute(t, Command, environ, "snapshot", "verify", taken.Name)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, path)
	require.NoError(t, os.Remove(path))
	code, stdout, stderr = clitest.Execute(t, Command, environ, "snapshot", "list")
	require.Equal(t, 1, code)
	require.Equal(t, "There is no snapshot.\n", stdout)
	require.Contains(t, stderr, path+", at byte 0: it is gone")
}

func TestSnapshotsNeedAPlace(t *testing.T) {
	for _, command := range []string{"take", "list", "verify"} {
		code, _, stderr := clitest.Execute(t, Command, nil, "snapshot", command)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "snapshots.url isn't set")
	}
	code, _, stderr := clitest.Execute(t, Command, []string{"STANDINGS_SNAPSHOTS_URL=dir:" + t.TempDir()}, "snapshot", "verify", "yesterday")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "it is no name of a snapshot")
}
