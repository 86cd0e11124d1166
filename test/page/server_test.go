package page

// Boards in Redis, and the built consumer that serves them.

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

// place has standings in Redis and a server for them.
type place struct {
	*clitest.Standings
	t        *testing.T
	window   periods.Window // the current window
	previous string
	port     int
	settings []string
	process  *child.Process
}

// begin creates empty boards, and serves them.
func begin(t *testing.T, settings ...string) *place {
	t.Helper()
	chromium(t) // first, since the test is not run without one
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

// serve starts the server, on its previous port if it has one.
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

// stop shuts the server down, as an operator does.
func (p *place) stop() { p.process.Stop(10 * time.Second) }

// url returns the page's address, with the selection in the fragment.
func (p *place) url(choices ...string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/", p.port) + strings.Join(choices, "")
}

// earns counts points that a member of global has just earned.
func (p *place) earns(member string, points int64) {
	p.t.Helper()
	p.AddTo(p.t, p.window.Name, "global", at(member, points, p.window.Start))
}

// at returns a change of a member's points, one second after the start of a window.
func at(member string, points, start int64) ledger.Member {
	return ledger.Member{ID: []byte(member), Points: points, Time: start + 1000}
}

// named sets the name of a member.
func (p *place) named(member, name string) {
	p.t.Helper()
	until := time.Now().Add(24 * time.Hour).UnixMilli()
	require.NoError(p.t, p.Reader.Client.HSet(p.t.Context(), p.Store.Keys().Names(), member, fmt.Sprint(1, " ", until, " ", name)).Err())
}

// behind reports a lag of the consumer.
func (p *place) behind(lag int64) {
	p.t.Helper()
	p.Reports(p.t, 0, workers.Line{Owner: "me:1", State: workers.StateRunning, Lag: &lag})
}
