package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/test/testenv"
)

// StartSentinel starts a Sentinel that watches the master at an address under a name, and detects its loss
// within a second. lines are added to its configuration. It returns its address. The Sentinel ends with the
// test.
func StartSentinel(t testing.TB, name, master string, quorum int, lines ...string) string {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	host, masterPort, _ := strings.Cut(master, ":")
	all := append([]string{
		fmt.Sprintf("port %d", port), "bind 127.0.0.1", "dir " + dir,
		fmt.Sprintf("sentinel monitor %s %s %s %d", name, host, masterPort, quorum),
		"sentinel down-after-milliseconds " + name + " 1000",
		"sentinel failover-timeout " + name + " 5000",
	}, lines...)
	conf := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(conf, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.RedisProgram(t), conf, "--sentinel")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	process, err := child.Start(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("Sentinel %d saw:\n%s", port, child.Tail(log.Name(), 60))
		}
	})
	select {
	case <-process.Done():
		t.Fatalf("a Sentinel ended: %v: %s", process.Err(), child.Tail(log.Name(), 5))
	case <-time.After(100 * time.Millisecond): // it reports wrong settings at once
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}
