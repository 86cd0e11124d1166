package v1

// Exports of a whole window. An export reads page by page, each page at its own instant, so it never blocks Redis
// for longer than one page takes.

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/standings/standings/internal/reading"
)

const (
	exportPage  = 1000
	exportPause = 30 * time.Second // how long a client may take for a page
)

// exportWindow handles GET …/export.
func (a *api) exportWindow(q *request, w http.ResponseWriter) error {
	format := q.choice("format", "ndjson", "csv")
	raw := q.choice("raw", "0", "1")
	if raw == "1" && format != "csv" {
		return wrong("raw", "raw requires format=csv. NDJSON is always exact")
	}
	t, _, err := q.target(a)
	if err != nil {
		return err
	}
	first := reading.Page{Limit: exportPage}
	if q.head() {
		first.Limit = 0 // the window without its rows
	}
	v, err := unlessLost(a.page(q, t, first))
	if err != nil {
		return err
	}
	t = v.Target
	t.Named = v.Window.Name // stay with this window when current or previous moves on
	keeping, revision := a.keeping(q, &v), v.Revision
	w.Header().Set("Cache-Control", cmp.Or(keeping, "no-store"))
	out := bufio.NewWriter(w)
	lines := NewLines(out, LineFormat{Name: format, Raw: raw == "1"})
	w.Header().Set("Content-Type", "application/x-ndjson")
	if format == "csv" {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	}
	if q.head() {
		return nil
	}
	control, n := http.NewResponseController(w), int64(0)
	if err := lines.Begin(&v); err != nil {
		return err
	}
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportPause)) // without support for deadlines there is no limit
		if err := lines.Rows(&v); err != nil {
			return err
		}
		n += int64(len(v.Standings))
		if len(v.Standings) < exportPage {
			break
		}
		after := v.Standings[exportPage-1].Pivot()
		if err := out.Flush(); err != nil {
			return err
		}
		of := v
		if v, err = a.page(q, t, reading.Page{Limit: exportPage, After: &after}); err != nil {
			return err
		}
		if keeping != "" && v.Revision != revision { // caches may keep what was sent so far, unless the response is cut off
			return fmt.Errorf("export %s %s %s: the window was reopened meanwhile", v.Name, v.Window.Period, v.Window.Name)
		}
		if err := reading.SameCopy(&of, &v); err != nil {
			return err
		}
	}
	if err := lines.End(&v, n); err != nil {
		return err
	}
	return out.Flush()
}

// page reads one page, within the timeout of a request.
func (a *api) page(q *request, t reading.Target, p reading.Page) (reading.View, error) {
	ctx, cancel := context.WithTimeout(q.ctx, a.Timeout)
	defer cancel()
	return a.Reader.Rows(ctx, t, p)
}
