package page

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var shots = flag.String("shots", "", "take pictures of the demo's page into this `folder`, for docs/")

// shotAfter is the time for which the page is open before a picture, so that its plots have data.
var shotAfter = flag.Duration("shotafter", 100*time.Second, "how long the page is open before a picture is taken")

// TestPictures takes pictures of the page at both widths and in both colour schemes:
// go test ./test/page -run Pictures -shots=DIR.
func TestPictures(t *testing.T) {
	if *shots == "" {
		t.Skip("pictures are taken with -shots=folder")
	}
	address := startDemo(t, "--rate", "400", "--members", "300")
	type picture struct {
		name    string
		as      look
		choices string
		tab     *tab
	}
	var all []*picture
	for _, scheme := range []string{"light", "dark"} {
		choices := map[string]string{"light": "#board=global&period=monthly&top=10&member=Ritiki", "dark": "#board=arena&period=weekly"}
		all = append(all, &picture{name: "desktop-" + scheme, as: look{width: 1180, height: 820, scheme: scheme, scale: 1.5}, choices: "#top=25&board=global&period=monthly"},
			&picture{name: "phone-" + scheme, as: look{width: 390, height: 844, scheme: scheme, scale: 2}, choices: choices[scheme]})
	}
	for _, p := range all {
		p.tab = open(t, p.as, address+p.choices)
	}
	time.Sleep(*shotAfter)
	for _, p := range all {
		p.tab.until("document.querySelectorAll('#rows tr').length > 10")
		png, err := chromedp.Run(p.tab.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		path := filepath.Join(*shots, fmt.Sprintf("page-%s.png", p.name))
		require.NoError(t, os.WriteFile(path, png, 0o600))
	}
}
