package v1

// The lines of an export, as CSV and as NDJSON: those of the API, and of the command export.

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/safejson"
)

// Lines writes windows row by row: Begin once for a window, Rows for each page of it, End once it is
// through.
type Lines interface {
	Begin(v *reading.View) error
	Rows(v *reading.View) error
	End(v *reading.View, rows int64) error
	// Done says that all windows are through, where there are several.
	Done(windows, rows int64) error
}

// LineFormat is how lines are written.
type LineFormat struct {
	Name    string // ndjson or csv
	Several bool   // of several windows: each row says of which it is
	Raw     bool   // of CSV: ids and names as they are, though a spreadsheet takes some for formulas
}

// NewLines are lines in a format.
func NewLines(w io.Writer, f LineFormat) Lines {
	if f.Name == "csv" {
		return &csvLines{Writer: csv.NewWriter(w), several: f.Several, raw: f.Raw}
	}
	n := &ndjson{json.NewEncoder(safejson.NewWriter(w)), f.Several}
	n.SetEscapeHTML(false)
	return n
}

// exportEnd is the last line of a window as NDJSON: an export that lacks it was cut off.
type exportEnd struct {
	End    bool         `json:"end"`
	Rows   int64        `json:"rows"`
	Window windowAnswer `json:"window"`
	Trust  trust        `json:"trust"` // of the last page
}

// exportDone is the last line of several.
type exportDone struct {
	Done    bool  `json:"done"`
	Windows int64 `json:"windows"`
	Rows    int64 `json:"rows"`
}

// rowOf is a row of one of several windows.
type rowOf struct {
	Board  string `json:"board"`
	Period string `json:"period"`
	Window string `json:"window"`
	*standing
}

type ndjson struct {
	*json.Encoder
	several bool
}

func (n *ndjson) Begin(*reading.View) error { return nil }

func (n *ndjson) Rows(v *reading.View) error {
	for i := range v.Standings {
		s := row(v, &v.Standings[i], ordinal, 0)
		var line any = &s
		if n.several {
			line = &rowOf{v.Name, string(v.Window.Period), v.Window.Name, &s}
		}
		if err := n.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func (n *ndjson) End(v *reading.View, rows int64) error {
	return n.Encode(&exportEnd{true, rows, windowOf(v), trustOf(v, nil)})
}

func (n *ndjson) Done(windows, rows int64) error {
	return n.Encode(&exportDone{true, windows, rows})
}

// csvLines have a head. Of several windows, which may count different fields, those are one column, as
// a JSON object.
type csvLines struct {
	*csv.Writer
	several bool
	raw     bool
	begun   bool
}

// formulas are the characters that a cell begins with which a spreadsheet takes for a formula, or that
// escape one: an apostrophe before it makes the cell text.
const formulas = "=+-@\t\r\n＝＋－＠'"

// cell is an id or a name as a cell. The escape can be taken back: a cell that begins with an
// apostrophe is the text after it.
func (c *csvLines) cell(text string) string {
	if !c.raw && strings.IndexAny(text, formulas) == 0 {
		return "'" + text
	}
	return text
}

func (c *csvLines) Begin(v *reading.View) error {
	if c.several {
		if c.begun {
			return nil
		}
		c.begun = true
		return c.Write([]string{"board", "period", "window", "rank", "member", "name", "points", "fields", "reached_at"})
	}
	head := []string{"rank", "member", "name"}
	if v.Fields.Len() == 0 {
		head = append(head, "points")
	}
	for _, f := range v.Fields.List() {
		head = append(head, f.Name)
	}
	return c.Write(append(head, "reached_at"))
}

func (c *csvLines) Rows(v *reading.View) error {
	for i := range v.Standings {
		if err := c.Write(c.line(v, i)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func (c *csvLines) line(v *reading.View, i int) []string {
	st := &v.Standings[i]
	line := []string{strconv.FormatInt(st.Rank, 10), c.cell(st.Member), c.cell(st.Name)}
	at := timeMS(st.ReachedAt.UnixMilli())
	if c.several {
		points, fields := "", string(bytes.TrimSpace(fieldsOf(&v.Board, st)))
		if fields == "" {
			points = strconv.FormatInt(st.Points, 10)
		}
		return append([]string{v.Name, string(v.Window.Period), v.Window.Name}, append(line, points, fields, at)...)
	}
	if v.Fields.Len() == 0 {
		line = append(line, strconv.FormatInt(st.Points, 10))
	}
	for f := range v.Fields.Len() {
		line = append(line, strconv.FormatInt(st.Tuple[f], 10))
	}
	return append(line, at)
}

func (c *csvLines) End(*reading.View, int64) error {
	c.Flush()
	return c.Error()
}

func (c *csvLines) Done(int64, int64) error {
	if !c.begun { // there is no window: a head all the same
		if err := c.Begin(nil); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
