package page

// Checks the page with axe-core: contrast, names, roles, order. scripts/axe downloads axe-core.

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/test/testenv"
)

// axeVersion is the version that scripts/axe downloads.
const axeVersion = "4.14.1"

// axe returns axe-core's program, or reports the test as not run if scripts/axe has not downloaded it.
func axe(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(cache, "standings", "axe-core-"+axeVersion, "axe.min.js"))
	if err != nil {
		testenv.NotRun(t, "it needs axe-core, which scripts/axe fetches")
	}
	return string(text)
}

// violation is a rule that elements of the page violate.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible checks the page as it is against axe's rules. The browser's debugger runs axe, since the page's content
// security policy does not let the page itself run it.
func (b *tab) accessible(program, as string) {
	b.t.Helper()
	eval[bool](b, "("+"(() => {"+program+"\n})(), true)")
	found := eval[[]violation](b, `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) =>
		({ID: v.id, Help: v.help, Nodes: v.nodes.map((n) => ({HTML: n.html, FailureSummary: n.failureSummary}))})))`)
	for _, v := range found {
		for _, n := range v.Nodes {
			b.t.Errorf("%s: %s (%s)\n%s\n%s", as, v.Help, v.ID, n.HTML, n.FailureSummary)
		}
	}
	require.Greater(b.t, eval[int](b, "axe.run(document, {resultTypes: ['passes']}).then((r) => r.passes.length)"), 20, "axe has looked at too little")
}

func TestEverybodyCanUseThePage(t *testing.T) {
	program := axe(t)
	p := begin(t)
	for i := range 30 {
		p.earns(fmt.Sprint("u", i), int64(1000-10*i))
	}
	p.named("u3", "Frida")
	for _, as := range []look{desktop, {width: 1200, height: 900, scheme: "dark"}, phone, {width: 360, height: 740, scheme: "dark"}} {
		t.Run(fmt.Sprint(as.scheme, " ", as.width), func(t *testing.T) {
			p.behind(0)
			b := open(t, as, p.url())
			b.until("document.querySelectorAll('#rows tr').length === 25")
			b.shows("#status", "Complete and current")
			b.accessible(program, "the top")
			// Arrows, and another state than current.
			p.earns("u7", 500)
			b.until("document.querySelector('#rows .up')")
			p.earns("u7", -500)
			lag := int64(1234)
			p.Reports(t, 0, workers.Line{Owner: "me:1", State: workers.StateHalted, Lag: &lag})
			b.shows("#status", "Stalled")
			b.do(chromedp.SendKeys(chromedp.CSS("#member"), "u3"+kb.Enter))
			b.shows("#member-text", "Rank 4 of 30")
			b.accessible(program, "a member")
		})
	}
	p.stop()
	b := open(t, desktop, "about:blank")
	p.serve()
	b.do(chromedp.Navigate(p.url()))
	b.until("document.querySelectorAll('#rows tr').length === 25")
	p.stop()
	b.shows("#notice", "Trying again")
	b.accessible(program, "a lost connection")
}
