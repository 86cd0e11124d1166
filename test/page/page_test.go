package page

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/test/testenv"
)

func TestABoardAndAWindowAreChosenAndALinkShowsThem(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	p.earns("bea", 20)
	p.AddTo(t, p.window.Name, "eu", at("cleo", 5, p.window.Start))
	p.AddTo(t, p.previous, "eu", at("dora", 7, p.window.Start-7*24*3600*1000))
	b := open(t, desktop, p.url())
	b.shows("#link", "Live")
	b.showsMembers("ada", "bea")
	b.shows("#title", "global")
	b.shows("#about", "weekly · "+p.window.Name)
	b.shows("#left", "left")
	require.Equal(t, []string{"Rank", "Climbed or fallen", "Member", "Points", "Reached"}, eval[[]string](b, `[...document.querySelectorAll('th')].map((e) => e.textContent)`))

	b.picks("#board", "eu")
	b.showsMembers("cleo")
	b.shows("#title", "eu")
	b.until(fmt.Sprintf("document.querySelector('#window').textContent === 'Now (%s)Previous (%s)'", p.window.Name, p.previous)) // each window once
	b.picks("#window", "previous")
	b.showsMembers("dora")
	b.until("document.querySelector('#left-text').textContent === 'Over'")
	b.clicks("#tops", "100")
	address := eval[string](b, "location.href")
	require.Equal(t, p.url("#board=eu&period=weekly&window=previous&top=100"), address)
	b.do(chromedp.NavigateBack(), chromedp.NavigateBack())
	b.showsMembers("cleo")

	other := open(t, phone, address)
	other.showsMembers("dora")
	other.until("document.querySelector('#tops input[value=\"100\"]').checked")
}

func TestRanksMoveAsStandingsChange(t *testing.T) {
	p := begin(t)
	for i := range 30 {
		p.earns(fmt.Sprint("u", i), int64(1000-10*i))
	}
	b := open(t, desktop, p.url())
	b.until("document.querySelectorAll('#rows tr').length === 25")
	require.Equal(t, "u0", b.members()[0])
	// A moved row has an arrow, and a transform that ends.
	eval[bool](b, `(window.moved = 0, new MutationObserver(() => {
		window.moved = Math.max(window.moved, document.querySelector('#rows').getAnimations({subtree: true}).filter((a) => a.effect.getKeyframes().some((k) => k.transform)).length)
	}).observe(document.querySelector('#rows'), {childList: true, subtree: true}), true)`)
	eval[bool](b, "([...document.querySelectorAll('#rows a')].find((a) => a.textContent === 'u5').focus(), true)")
	p.earns("u5", 100)
	b.until("document.querySelectorAll('#rows tr')[0].querySelector('.name').textContent === 'u5'")
	b.until("document.querySelector('#rows tr .up')?.ariaLabel === 'up 5'")
	b.until("document.querySelectorAll('#rows .down').length === 5")
	b.until("window.moved > 0")
	b.shows("#rows tr:first-child td.value", "1,050")
	require.Equal(t, "u5", eval[string](b, "document.activeElement.textContent")) // the focus moves with the row
	require.Equal(t, []string{"u5", "u0", "u1"}, b.members()[:3])
	b.until("document.querySelectorAll('#rows .up, #rows .down').length === 0") // the arrows have faded
	b.until("document.querySelector('#rows').getAnimations({subtree: true}).length === 0")

	// A member enters the visible rows from below, and another one leaves them.
	p.earns("u29", 10_000)
	b.until("document.querySelector('#rows .name').textContent === 'u29'")
	require.Len(t, b.members(), 25)
	require.NotContains(t, b.members(), "u24")
	require.Equal(t, "1", eval[string](b, "document.querySelector('#rows tr td.rank').dataset.medal"))
	for i := range 40 { // many at once: the order equals Redis's
		p.earns(fmt.Sprint("u", i*7%30), int64(37*i))
	}
	want := func() (all []string) {
		found, err := p.Reader.Client.ZRevRange(t.Context(), p.Store.Keys().Listed("global:weekly:"+p.window.Name), 0, 24).Result()
		require.NoError(t, err)
		return found
	}
	b.showsMembers(want()...)
}

func TestAMemberIsFoundWithTheNeighbours(t *testing.T) {
	p := begin(t)
	for i := range 60 {
		p.earns(fmt.Sprint("u", i), int64(1000-10*i))
	}
	p.named("u40", "Frida")
	b := open(t, desktop, p.url("#top=10"))
	b.until("document.querySelectorAll('#rows tr').length === 10")
	b.do(chromedp.SendKeys(chromedp.CSS("#member"), "u40"+kb.Enter))
	b.until("document.querySelectorAll('#rows tr').length === 11")
	require.Equal(t, []string{"u35", "u36", "u37", "u38", "u39", "Frida", "u41", "u42", "u43", "u44", "u45"}, b.members())
	b.shows("#member-card", "Frida")
	b.shows("#member-text", "Rank 41 of 60, with 600 points. 11 more points would pass u39.")
	require.Equal(t, "u40", eval[string](b, "document.querySelector('#rows [aria-current] .id').textContent"))
	p.earns("u40", 1)
	b.shows("#member-text", "10 more points would pass u39.")

	b.do(chromedp.Click(chromedp.CSS("#back")))
	b.until("document.querySelectorAll('#rows tr').length === 10")
	require.Empty(t, eval[string](b, "document.querySelector('#member').value"))
	b.do(chromedp.SendKeys(chromedp.CSS("#member"), "nobody"+kb.Enter))
	b.shows("#member-text", "Nobody with this id is in this window.")
	p.earns("nobody", 5)
	b.shows("#member-text", "Rank 61 of 61")
	// The page scrolls to the member.
	b.do(chromedp.Click(chromedp.CSS("#back")))
	b.clicks("#tops", "100")
	b.until("document.querySelectorAll('#rows tr').length === 61")
	b.do(chromedp.SendKeys(chromedp.CSS("#member"), "u40"+kb.Enter))
	b.shows("#member-text", "Rank 41 of 61")
	b.until("(() => { const r = document.querySelector('#rows [aria-current]').getBoundingClientRect(); return r.top > -1 && r.bottom < innerHeight + 1 })()")
	b.clicks("#tops", "10")
	// A row links to its member.
	b.do(chromedp.Click(chromedp.CSS("#back")))
	b.until("document.querySelectorAll('#rows tr').length === 10")
	eval[bool](b, "(document.querySelectorAll('#rows a')[2].click(), true)")
	b.shows("#member-text", "Rank 3 of 61")
}

// dangerous has ids that would run code, break the layout, or look like another id if they were treated as more
// than text.
var dangerous = []string{
	`<img src=x onerror="window.ran=1">`, `</td></tr><script>window.ran=1</script>`, `"><svg onload=window.ran=1>`, `javascript:window.ran=1`,
	"\u202egnirts", "a\u2066b", "line\nbreak\ttab\x00nul\x7f", strings.Repeat("W", 256), "\u200b", "  spaces  ", strings.Repeat("Z\u0351\u0352\u0363\u0357", 20),
	`{{constructor.constructor('window.ran=1')()}}`, "%2e%2e%2f&member=x#y?z", "..", "__proto__", "constructor", "عربي", "👩\u200d👩\u200d👧", "\u3164",
}

func TestNothingInAnIDRunsOrBreaksThePage(t *testing.T) {
	p := begin(t)
	for i, id := range dangerous {
		p.earns(id, int64(1000-i))
	}
	p.earns("named", 2000)
	p.named("named", `<b onclick="window.ran=1">Bold</b>`)
	for _, as := range []look{desktop, phone} {
		b := open(t, as, p.url())
		b.until(fmt.Sprintf("document.querySelectorAll('#rows tr').length === %d", len(dangerous)+1))
		shown := b.members()
		require.Equal(t, `<b onclick="window.ran=1">Bold</b>`, shown[0])
		require.Equal(t, dangerous[:4], shown[1:5])
		require.Equal(t, []string{"‹U+202E›gnirts", "a‹U+2066›b", "line␊break␉tab␀nul␡", strings.Repeat("W", 256), "‹U+200B›", "␣␣spaces␣␣"}, shown[5:11])
		require.Equal(t, []string{"عربي", "👩\u200d👩\u200d👧", "‹U+3164›"}, shown[len(shown)-3:])
		// Rows have one height and fit the page's width; a truncated name is complete in the title.
		require.Equal(t, []float64{eval[float64](b, "parseFloat(getComputedStyle(document.querySelector('#table')).getPropertyValue('--row'))")},
			slices.Compact(eval[[]float64](b, "[...document.querySelectorAll('#rows tr')].map((e) => e.offsetHeight)")))
		require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), int(as.width))
		require.True(t, eval[bool](b, "[...document.querySelectorAll('#rows a')].every((a) => a.title.endsWith(a.querySelector('.id').textContent || a.querySelector('.name').textContent))"))
		require.True(t, eval[bool](b, "[...document.querySelectorAll('#rows .name')].every((e) => e.tagName === 'BDI')"))
		for i := range dangerous {
			eval[bool](b, fmt.Sprintf("(document.querySelectorAll('#rows a')[%d].click(), true)", i+1))
			b.shows("#member-text", fmt.Sprintf("Rank %d of %d", i+2, len(dangerous)+1))
			require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), int(as.width), dangerous[i])
			b.do(chromedp.Click(chromedp.CSS("#back")))
			b.until(fmt.Sprintf("document.querySelector('#member-card').hidden && document.querySelectorAll('#rows tr').length === %d", len(dangerous)+1))
		}
		require.False(t, eval[bool](b, "'ran' in window"))
		require.Zero(t, eval[int](b, "document.querySelectorAll('#rows img, #rows script, #rows svg, #rows b').length"))
	}
}

// A link is as hostile as an id: its sender controls all of it.
func TestNothingInALinkRuns(t *testing.T) {
	p := begin(t)
	p.earns("ada", 1)
	for _, id := range []string{`<img src=x onerror="window.ran=1">`, "../../boards"} {
		b := open(t, desktop, p.url("#board="+url.QueryEscape(id)+"&period="+url.QueryEscape(id)+"&window="+url.QueryEscape(id)+"&member="+url.QueryEscape(id)+"&top=7"))
		b.until("!document.querySelector('#notice').hidden")
		require.False(t, eval[bool](b, "'ran' in window"))
		b.picks("#board", "global")
		b.until("document.querySelector('#link').dataset.state === 'live'")
	}
}

func TestALostConnectionIsSaidAndComesBackByItself(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	p.earns("bea", 20)
	b := open(t, desktop, p.url())
	b.showsMembers("ada", "bea")
	p.stop()
	b.shows("#notice", "The connection to the server is lost. Trying again")
	b.shows("#link", "Not connected")
	b.shows("#said", "The connection is lost")
	require.Equal(t, []string{"ada", "bea"}, b.members()) // the rows that were received remain visible
	p.earns("bea", 50)
	p.serve()
	b.showsMembers("bea", "ada")
	b.shows("#link", "Live")
	b.until("document.querySelector('#notice').hidden")
	b.shows("#said", "Connected again")

	// A board that is added meanwhile can be selected.
	p.AddTo(t, p.window.Name, "new", at("eve", 1, p.window.Start))
	p.stop()
	b.shows("#link", "Not connected")
	p.serve()
	eval[bool](b, "(document.querySelector('#retry').click(), true)")
	b.until("[...document.querySelector('#board').options].some((o) => o.value === 'new')")
}

func TestALinkToAPeriodThatThereIsNotIsNotTriedForEver(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	b := open(t, desktop, p.url("#board=global&period=daily"))
	b.shows("#link", "Not found")
	b.shows("#notice", "Board global has no period daily. Choose something else above.")
	b.clicks("#periods", "weekly")
	b.showsMembers("ada")
	b.shows("#link", "Live")
	b.until("document.querySelector('#notice').hidden")
}

func TestABoardThatIsLostIsSaid(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	b := open(t, desktop, p.url())
	b.showsMembers("ada")
	key := p.Store.Keys().Listed("global:weekly:" + p.window.Name)
	require.NoError(t, p.Reader.Client.Rename(t.Context(), key, key+"~away").Err())
	b.shows("#notice", "The board can’t be shown right now: Redis has lost global weekly "+p.window.Name)
	b.shows("#said", "can’t be shown")
	require.NoError(t, p.Reader.Client.Rename(t.Context(), key+"~away", key).Err())
	b.until("document.querySelector('#notice').hidden")
	b.showsMembers("ada")
}

func TestATabThatIsHiddenHoldsNoStream(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	b := open(t, desktop, p.url())
	b.showsMembers("ada")
	eval[bool](b, "(Object.defineProperty(document, 'hidden', {configurable: true, value: true}), document.dispatchEvent(new Event('visibilitychange')))")
	b.shows("#link", "Paused")
	p.earns("bea", 40)
	p.stop() // no client is connected, so it ends at once, and no client notices
	p.serve()
	require.Equal(t, []string{"ada"}, b.members())
	require.True(t, eval[bool](b, "document.querySelector('#notice').hidden"))
	eval[bool](b, "(delete document.hidden, document.dispatchEvent(new Event('visibilitychange')))")
	b.showsMembers("bea", "ada")
	b.shows("#link", "Live")
}

func TestAPageWithoutATokenAsksForOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("shop 0123456789abcdef0\n"), 0o600))
	p := begin(t, "STANDINGS_API_TOKENS_FILE="+path)
	p.earns("ada", 30)
	b := open(t, desktop, p.url())
	b.until("!document.querySelector('#token').hidden && document.querySelector('#shown').hidden")
	b.shows("#link", "A token is needed")
	b.until("document.activeElement.id === 'token-text'")
	b.do(chromedp.SendKeys(chromedp.CSS("#token-text"), "wrong, this one is"+kb.Enter))
	b.shows("#token-why", "doesn’t take this token")
	b.do(chromedp.SendKeys(chromedp.CSS("#token-text"), "0123456789abcdef0"+kb.Enter))
	b.showsMembers("ada")
	require.Equal(t, "0123456789abcdef0", eval[string](b, "sessionStorage.getItem('standings-token')"))
	require.NotContains(t, eval[string](b, "location.href"), "0123456789")
	b.do(chromedp.Reload())
	b.showsMembers("ada")
}

func TestTheStatusIsInWords(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	p.behind(0)
	p.AddTo(t, p.previous, "global", at("ada", 5, p.window.Start-7*24*3600*1000))
	b := open(t, desktop, p.url())
	b.shows("#status", "Complete and current")
	b.shows("#status", "new events count as they come")
	b.picks("#window", "previous")
	b.shows("#status", "The window is over and nothing is missing. Late events may still count.")
	b.do(chromedp.Navigate(p.url("#board=global&period=weekly&window=2020-W01")))
	b.shows("#status", "No event counts in this window, or the window is too old to be kept.")
	require.Equal(t, "Nobody is in this window.", eval[string](b, "document.querySelector('#empty:not([hidden])').textContent"))
	b.do(chromedp.Navigate(p.url()))
	lag := int64(1234)
	p.Reports(t, 0, workers.Line{Owner: "me:1", State: workers.StateHalted, Reason: "gap", Lag: &lag})
	b.shows("#status", "Stalled")
	b.shows("#status", "1,234 events wait to be counted. Events of these partitions do not count right now: points/0 (gap).")
	b.shows("#lag", "1,234")
	b.shows("#said", "Stalled")
	require.NotEmpty(t, eval[string](b, "document.querySelector('#lag-plot .line').getAttribute('d') ?? ''"))
}

// A phone, operated by touch, and a keyboard without a pointer.
func TestAPhoneAndAKeyboardReachEverything(t *testing.T) {
	p := begin(t)
	for i := range 12 {
		p.earns(fmt.Sprint("member-with-a-long-name-", i), int64(90_000_000-i))
	}
	b := open(t, phone, p.url())
	b.until("document.querySelectorAll('#rows tr').length === 12")
	require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), int(phone.width))
	require.Empty(t, eval[[]string](b, `[...document.querySelectorAll('button, select, input[type=search], .pills label')].filter((e) => e.offsetParent && (e.offsetHeight < 32 || e.offsetWidth < 32)).map((e) => e.outerHTML)`))
	seen := map[string]bool{}
	for range 30 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, `(() => { const e = document.activeElement; return e.id || e.name || e.type || e.className || e.tagName })()`)
		seen[at] = true
		if at != "BODY" {
			require.True(t, eval[bool](b, `(() => { let e = document.activeElement; if (e.type === 'radio') e = e.nextElementSibling; return getComputedStyle(e).outlineStyle !== 'none' })()`), "focus on %s isn't seen", at)
		}
	}
	for _, at := range []string{"board", "periods-choice", "window", "tops-choice", "member", "submit", "A"} {
		require.True(t, seen[at], "%s isn't reached by Tab, which reached %v", at, seen)
	}
}

// Boards have up to five fields, which move below the name if there is no room next to it.
func TestManyFieldsFitAPhone(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	for _, as := range []look{phone, desktop} {
		b := open(t, as, p.url())
		b.showsMembers("ada")
		eval[bool](b, "(Object.defineProperty(document, 'hidden', {configurable: true, value: true}), document.dispatchEvent(new Event('visibilitychange')))")
		b.shows("#link", "Paused")
		eval[bool](b, `import('/page/table.js').then(({Table}) => {
			const fields = ['levels', 'deaths', 'experience', 'revives', 'time_ms']
			new Table(document.querySelector('#table'), document.querySelector('#columns'), document.querySelector('#rows')).show([1, 2, 3].map((rank) =>
				({rank, member: 'somebody with a long name ' + rank, points: null, fields: {levels: 9999, deaths: 999, experience: 99999 - rank, revives: 99, time_ms: 600000}, reached_at: null})), fields, '', () => '#')
			return true
		})`)
		require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), int(as.width))
		require.Equal(t, []string{"9,999", "999", "99,998", "99", "600,000"}, eval[[]string](b, "[...document.querySelectorAll('#rows tr:first-child .value')].map((e) => e.textContent)"))
		require.True(t, eval[bool](b, "[...document.querySelectorAll('#rows .value')].every((e) => e.scrollWidth <= e.offsetWidth)"), "a value is cut")
		require.True(t, eval[bool](b, "[...document.querySelectorAll('th.value')].every((e) => e.title === e.textContent)")) // complete
		require.Greater(t, eval[float64](b, "document.querySelector('#rows .who').offsetWidth"), 120.0)
		if *shots != "" {
			png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(*shots, fmt.Sprint("many-", as.width, ".png")), png, 0o600))
		}
	}
}

func TestMotionIsLeftOutWhereItIsNotWanted(t *testing.T) {
	p := begin(t)
	p.earns("ada", 30)
	p.earns("bea", 20)
	as := desktop
	as.still = true
	b := open(t, as, p.url())
	b.showsMembers("ada", "bea")
	eval[bool](b, `(window.moved = 0, new MutationObserver(() => {
		window.moved += document.querySelector('#rows').getAnimations({subtree: true}).filter((a) => a.effect.getKeyframes().some((k) => k.transform)).length
	}).observe(document.querySelector('#rows'), {childList: true, subtree: true}), true)`)
	p.earns("bea", 50)
	b.showsMembers("bea", "ada")
	b.until("document.querySelector('#rows .up')")
	require.Zero(t, eval[int](b, "window.moved"))
}

// A hundred rows, many of which move ten times a second. Frames are late on a busy machine, so the test checks that
// no row is measured individually: an update costs one or two layouts, no matter how many rows move.
func TestAHundredRowsMoveWithoutAStutter(t *testing.T) {
	testenv.Slow(t)
	p := begin(t)
	for i := range 100 {
		p.earns(fmt.Sprintf("u%02d", i), int64(100_000-i))
	}
	b := open(t, desktop, p.url("#top=100"))
	b.until("document.querySelectorAll('#rows tr').length === 100")
	eval[bool](b, `(window.times = [], window.draws = 0, new MutationObserver(() => window.draws++).observe(document.querySelector('#rows'), {childList: true, subtree: true}),
		requestAnimationFrame(function next(at) { window.times.push(at); requestAnimationFrame(next) }), true)`)
	before := b.costs()
	for i := range 50 {
		next := time.Now().Add(100 * time.Millisecond)
		for j := range 5 {
			p.earns(fmt.Sprintf("u%02d", (i*37+j*13)%100), int64(1+(i*7+j)%60))
		}
		time.Sleep(time.Until(next)) // the pace of the load
	}
	after := b.costs()
	draws := eval[float64](b, "window.draws")
	p95 := eval[float64](b, "window.times.map((at, i, all) => at - all[Math.max(0, i - 1)]).sort((a, b) => a - b)[Math.floor(window.times.length * .95)]")
	layouts := (after["LayoutCount"] - before["LayoutCount"]) / draws
	t.Logf("%.0f updates, %d frames, 95 of 100 within %.0f ms; an update: %.1f layouts, %.1f ms of script, %.1f of styles, %.1f of layout", draws,
		eval[int](b, "window.times.length"), p95, layouts, 1000*(after["ScriptDuration"]-before["ScriptDuration"])/draws,
		1000*(after["RecalcStyleDuration"]-before["RecalcStyleDuration"])/draws, 1000*(after["LayoutDuration"]-before["LayoutDuration"])/draws)
	require.Greater(t, draws, 5.0)
	require.Less(t, layouts, 4.0)
}
