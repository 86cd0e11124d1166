package page

// Boards in a Redis, and the built consumer that serves them.

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/harness"
)

// place is a Redis's standings, and a server of them.
type place struct {
	*clitest.Standings
	t        *testing.T
	window   periods.Window // the current one
	previous string
	port     int
	settings []string
	process  *child.Process
}

// begin makes boards of nobody, and serves them.
func begin(t *testing.T, settings ...string) *place {
	t.Helper()
	chromium(t) // before anything is begun
	p := &place{Standings: clitest.StandingsOf(t, 0), t: t, settings: settings}
	var err error
	now := time.Now().UnixMilli()
	p.window, err = p.Reader.Calendar.At(periods.Weekly, now)
	require.NoError(t, err)
	before, err := p.Reader.Calendar.At(periods.Weekly, p.window.Start-1)
	require.NoError(t, err)
	p.previous = before.Name
	p.port, err = child.FreePort()
	require.NoError(t, err)
	p.serve()
	return p
}

// serve starts the server, where it was before if it was.
func (p *place) serve() {
	p.t.Helper()
	cmd := exec.Command(harness.Binary(p.t), "serve")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STANDINGS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(append(cmd.Env, p.Environ...), p.settings...), "STANDINGS_LISTEN=off", "STANDINGS_EVENT_FIELDS_NAME=by",
		fmt.Sprint("STANDINGS_API_LISTEN=127.0.0.1:", p.port))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	process, err := child.Start(cmd, "")
	require.NoError(p.t, err)
	p.process = process
	p.t.Cleanup(func() {
		process.Kill()
		<-process.Done()
		if p.t.Failed() {
			p.t.Logf("consumer serve said\n%s", out.String())
		}
	})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(p.t, func() bool {
		answer, err := client.Get(p.url())
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, within, 10*time.Millisecond)
}

// stop ends the server as an operator does.
func (p *place) stop() { p.process.Stop(10 * time.Second) }

// url is the page's address, with what is chosen.
func (p *place) url(choices ...string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/", p.port) + strings.Join(choices, "")
}

// earns counts points of a member of global, who has them now.
func (p *place) earns(member string, points int64) {
	p.t.Helper()
	p.AddTo(p.t, p.window.Name, "global", at(member, points, p.window.Start))
}

// at is a member's points, reached at a moment in a window that begins then.
func at(member string, points, start int64) ledger.Member {
	return ledger.Member{ID: []byte(member), Points: points, Time: start + 1000}
}

// named says what a member wants to be called.
func (p *place) named(member, name string) {
	p.t.Helper()
	until := time.Now().Add(24 * time.Hour).UnixMilli()
	require.NoError(p.t, p.Reader.Client.HSet(p.t.Context(), p.Store.Keys().Names(), member, fmt.Sprint(1, " ", until, " ", name)).Err())
}

// behind has the consumer report a lag.
func (p *place) behind(lag int64) {
	p.t.Helper()
	p.Reports(p.t, 0, workers.Line{Owner: "me:1", State: workers.StateRunning, Lag: &lag})
}
