package harness

import (
	"fmt"
	"maps"
	"os/exec"
	"testing"
	"time"

	"github.com/standings/standings/internal/embedded/child"
)

// Serve starts `consumer serve` with the place's settings, and returns the API's address once it is open.
// The process is killed at the test's end.
func (p *Place) Serve(t testing.TB) string {
	t.Helper()
	settings := maps.Clone(p.Settings)
	settings["api.listen"] = "127.0.0.1:0"
	cmd, log := exec.Command(Binary(t), "serve"), newLog()
	cmd.Env = p.Environment(settings)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 5 * time.Second
	process, err := child.Start(cmd, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("consumer serve's log ends with:\n%s", log.Tail(10))
		}
	})
	return fmt.Sprint("http://", log.Await(t, time.Minute, "API's port open").Fields["address"])
}
