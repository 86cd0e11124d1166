package page

// A headless Chromium, with a tab for each test.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// chromiumVariable names a Chromium to use instead of the first of chromiums on the PATH.
const chromiumVariable = "STANDINGS_TEST_CHROMIUM"

var chromiums = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

const within = harness.Within

func chromium(t *testing.T) string {
	t.Helper()
	if name := os.Getenv(chromiumVariable); name != "" {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		return path
	}
	for _, name := range chromiums {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testenv.NotRun(t, "it needs Chromium")
	return ""
}

// tab is the only tab of its own browser.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // the tab itself, to chromedp

	mu     sync.Mutex
	wrong  []string // exceptions, and violations of the page's policy
	logged []string // other messages of the browser, shown if the test fails
}

// look describes the screen and the preferences of a tab.
type look struct {
	width, height int64
	scheme        string // light or dark
	still         bool   // prefers-reduced-motion
	scale         float64
}

var desktop = look{width: 1200, height: 900, scheme: "light"}
var phone = look{width: 360, height: 740, scheme: "light"}

// open opens an address. Any error on the page until the end of the test fails the test.
func open(t *testing.T, as look, url string) *tab {
	t.Helper()
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox)...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.hear))
	t.Cleanup(b.done)
	b.as(as)
	b.do(chromedp.Navigate(url))
	return b
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.wrong = append(b.wrong, text)
	case *log.EventEntryAdded:
		text := fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text)
		if strings.Contains(text, "Content Security Policy") || e.Entry.Source == "security" {
			b.wrong = append(b.wrong, text)
		}
		b.logged = append(b.logged, text)
	}
}

// done runs at the end of the test.
func (b *tab) done() {
	b.mu.Lock()
	wrong, logged := b.wrong, b.logged
	b.mu.Unlock()
	if len(wrong) > 0 {
		b.t.Errorf("on the page: %s", strings.Join(wrong, "\n"))
	}
	if b.t.Failed() {
		b.t.Logf("the browser said %q; the page shows\n%s", logged, eval[string](b, "document.body.innerText"))
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// as applies a look to the tab.
func (b *tab) as(l look) {
	b.t.Helper()
	motion := "no-preference"
	if l.still {
		motion = "reduce"
	}
	if l.scale == 0 {
		l.scale = 1
	}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}})
		return err
	}), chromedp.EmulateViewport(l.width, l.height, func(p *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
		p.DeviceScaleFactor, p.Mobile = l.scale, l.width < 600
	}))
}

// eval returns the value of a JavaScript expression, decoded from JSON.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return v
}

// until waits until an expression is true. chromedp's Poll is not usable: it creates a function from a text,
// which the page's policy forbids.
func (b *tab) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(within); !eval[bool](b, "Boolean("+expression+")"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(b.t, "it doesn't become true", expression)
		}
	}
}

// shows waits until an element contains a text.
func (b *tab) shows(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q).textContent.includes(%q)", selector, text))
}

// members returns the names or ids in the rows, in order.
func (b *tab) members() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll('#rows .name')].map((e) => e.textContent)`)
}

// showsMembers waits until the rows have these members.
func (b *tab) showsMembers(want ...string) {
	b.t.Helper()
	var got []string
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = b.members(); fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	require.Equal(b.t, want, got)
}

// picks chooses an option of a select, with the event that a user's choice sends.
func (b *tab) picks(selector, value string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf("(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event('change', {bubbles: true})); return e.value === %q })()", selector, value, value))
}

// clicks clicks the radio button with a value.
func (b *tab) clicks(group, value string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf("(document.querySelector('%s input[value=%q]').click(), true)", group, value))
}

// costs returns the browser's work on the page so far: counts, and seconds.
func (b *tab) costs() map[string]float64 {
	b.t.Helper()
	all := map[string]float64{}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, performance.Enable, performance.EnableParams{}); err != nil {
			return err
		}
		got, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		for _, m := range got.Metrics {
			all[m.Name] = m.Value
		}
		return err
	}))
	return all
}
