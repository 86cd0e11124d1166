package page

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/test/harness"
)

// said collects the output of a process.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the output.
func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) find(pattern *regexp.Regexp) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := pattern.FindSubmatch(s.text.Bytes()); found != nil {
		return string(found[1])
	}
	return ""
}

var pageAddress = regexp.MustCompile(`(?m)^In a browser: (\S+) `)

// startDemo runs the demo, and returns the address of its page.
func startDemo(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"demo", "--plain"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STANDINGS_") && !strings.HasPrefix(v, "TMPDIR=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	out := &said{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 5 * time.Second
	process, err := child.Start(cmd, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		process.Stop(20 * time.Second)
		if t.Failed() {
			t.Logf("the demo said\n%s", out.text.String())
		}
	})
	address := ""
	require.Eventually(t, func() bool {
		address = out.find(pageAddress)
		return address != ""
	}, within, 10*time.Millisecond)
	return address
}

// The demo's boards are also in a browser, even if another demo runs on this machine.
func TestTheDemosBoardsAreInABrowser(t *testing.T) {
	chromium(t)
	few := []string{"--rate", "500", "--members", "60"}
	address, other := startDemo(t, few...), startDemo(t, few...)
	require.NotEqual(t, address, other) // the first demo uses the default port
	b := open(t, desktop, other)
	b.shows("#link", "Live")
	// The current year has members, except in its first hours, when only the last year has them.
	b.clicks("#periods", "yearly")
	b.until("document.querySelectorAll('#rows tr').length > 3 || document.querySelector('#about').textContent.includes('· 0\u00a0members')")
	b.until("[...document.querySelector('#board').options].some((o) => o.value === 'arena')")
	b.picks("#board", "arena")
	b.until("[...document.querySelectorAll('th.value')].map((e) => e.textContent).join() === 'stage,revives'")
	b.until("document.querySelectorAll('#rows tr').length > 3 && document.querySelector('#rows td.value').textContent !== ''")
	b.picks("#board", "global")
	b.until("document.querySelector('th.value')?.textContent === 'Points' && document.querySelectorAll('#rows tr').length > 3")
	b.until("document.querySelector('#rows .up, #rows .down')")
	b.until("Number(document.querySelector('#rate').textContent.replace(',', '')) > 50")
}
