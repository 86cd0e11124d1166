package v1

// A whole window, row by row: page after page, each as of its own moment, so that Redis is never
// held for longer than one page takes.

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/standings/standings/internal/reading"
)

const (
	exportPage  = 1000
	exportPause = 30 * time.Second // that a client may take for a page
)

// exportEnd is the last line of an export as NDJSON: one that lacks it was cut off.
type exportEnd struct {
	End    bool         `json:"end"`
	Rows   int64        `json:"rows"`
	Window windowAnswer `json:"window"`
	Trust  trust        `json:"trust"` // of the last page
}

// exportWindow is GET …/export.
func (a *api) exportWindow(q *request, w http.ResponseWriter) error {
	format, err := q.choice("format", "ndjson", "csv")
	if err != nil {
		return err
	}
	t, _, err := q.target(a)
	if err != nil {
		return err
	}
	v, err := a.page(q, t, reading.Page{Limit: exportPage})
	if err != nil {
		return err
	}
	if p := lostProblem(&v); p != nil {
		return p
	}
	t = v.Target
	t.Named = v.Window.Name // also once another one is the current one
	keeping, revision := a.keeping(q, &v), v.Revision
	w.Header().Set("Cache-Control", cmp.Or(keeping, "no-store"))
	out := bufio.NewWriter(w)
	var lines exporter = &ndjson{json.NewEncoder(out)}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if format == "csv" {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
		lines = &csvLines{csv.NewWriter(out)}
	}
	control, n := http.NewResponseController(w), int64(0)
	if err := lines.begin(&v); err != nil {
		return err
	}
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportPause)) // where there is none there is no limit
		for i := range v.Standings {
			if err := lines.row(&v, i); err != nil {
				return err
			}
		}
		n += int64(len(v.Standings))
		if len(v.Standings) < exportPage {
			break
		}
		after := v.Standings[exportPage-1].Pivot()
		if err := out.Flush(); err != nil {
			return err
		}
		if v, err = a.page(q, t, reading.Page{Limit: exportPage, After: &after}); err != nil {
			return err
		}
		if keeping != "" && v.Revision != revision { // what has been sent so far may be kept, unless it is cut off
			return fmt.Errorf("export %s %s %s: its seal was taken back meanwhile", v.Name, v.Window.Period, v.Window.Name)
		}
	}
	if err := lines.end(&v, n); err != nil {
		return err
	}
	return out.Flush()
}

// page reads one, for which Redis has the time that a request has.
func (a *api) page(q *request, t reading.Target, p reading.Page) (reading.View, error) {
	ctx, cancel := context.WithTimeout(q.ctx, a.Timeout)
	defer cancel()
	return a.Reader.Rows(ctx, t, p)
}

type exporter interface {
	begin(v *reading.View) error
	row(v *reading.View, i int) error
	end(v *reading.View, rows int64) error
}

type ndjson struct{ *json.Encoder }

func (n *ndjson) begin(*reading.View) error {
	n.SetEscapeHTML(false)
	return nil
}

func (n *ndjson) row(v *reading.View, i int) error {
	s := row(v, &v.Standings[i], ordinal, 0)
	return n.Encode(&s)
}

func (n *ndjson) end(v *reading.View, rows int64) error {
	return n.Encode(&exportEnd{true, rows, windowOf(v), trustOf(v, nil)})
}

type csvLines struct{ *csv.Writer }

func (c *csvLines) begin(v *reading.View) error {
	head := []string{"rank", "member", "name"}
	if v.Fields.Len() == 0 {
		head = append(head, "points")
	}
	for _, f := range v.Fields.List() {
		head = append(head, f.Name)
	}
	return c.Write(append(head, "reached_at"))
}

func (c *csvLines) row(v *reading.View, i int) error {
	st := &v.Standings[i]
	line := []string{strconv.FormatInt(st.Rank, 10), st.Member, st.Name}
	if v.Fields.Len() == 0 {
		line = append(line, strconv.FormatInt(st.Points, 10))
	}
	for f := range v.Fields.Len() {
		line = append(line, strconv.FormatInt(st.Tuple[f], 10))
	}
	return c.Write(append(line, timeMS(st.ReachedAt.UnixMilli())))
}

func (c *csvLines) end(*reading.View, int64) error {
	c.Flush()
	return c.Error()
}
