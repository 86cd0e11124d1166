package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The input is the output of go test, split at positions at which a pipe may split it.
func TestEveryFailureIsNamedOnce(t *testing.T) {
	const module = "github.com/standings/standings/"
	printed := strings.Join([]string{
		"ok  \t" + module + "internal/codec\t0.1s",
		"--- FAIL: TestOne (0.00s)",
		"    --- FAIL: TestOne/of_two (0.00s)",
		"        x --- FAIL: not a test's name but a line of its output",
		"FAIL",
		"FAIL\t" + module + "internal/periods\t0.2s",
		"--- FAIL: TestThatRunsATestThatFails (0.00s)", "ok  \t" + module + "internal/ledger\t0.1s",
		"# " + module + "test/e2e", "test/e2e/x.go:1:1: syntax error",
		"FAIL\t" + module + "test/e2e [build failed]",
		"panic: test timed out after 10m0s", "\trunning tests:", "\t\tTestThatHangs (10m0s)", "",
		"FAIL\t" + module + "test/fence\t600.1s",
		"FAIL\t" + module + "internal/fold\t0.1s",
		"FAIL", "",
	}, "\n")
	for size := range 9 {
		var out, list strings.Builder
		f := failures{to: &out}
		for rest := printed; rest != ""; {
			n := min(len(rest), size*7+1)
			_, err := f.Write([]byte(rest[:n]))
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, printed, out.String())
		f.list(&list)
		require.Equal(t, "\nFAILED: 5\n"+
			"  internal/periods TestOne\n  internal/periods TestOne/of_two\n"+
			"  test/e2e [build failed]\n  test/fence TestThatHangs (not ended)\n  internal/fold\n", list.String())
	}
}

func TestWhatWasNotRunIsCountedByReasonOrListed(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	var out strings.Builder
	report(&out, list)
	require.Empty(t, out.String(), "nothing was reported")
	require.NoError(t, os.WriteFile(list, []byte("p TestA: rare\np TestB/x: no clock: of its own\nq TestC: no clock: at all\n"), 0o600))
	t.Setenv(ListVariable, "")
	report(&out, list)
	require.Equal(t, "\nNOT RUN: 3 tests (make test LIST=1 lists them)\n     2  no clock\n     1  rare\n\n", out.String())
	t.Setenv(ListVariable, "1")
	out.Reset()
	report(&out, list)
	require.Equal(t, "\nNOT RUN: 3 tests\n  p TestA: rare\n  p TestB/x: no clock: of its own\n  q TestC: no clock: at all\n\n", out.String())
}
