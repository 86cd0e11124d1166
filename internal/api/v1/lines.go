package v1

// Export formats, CSV and NDJSON, for the API and the command export.

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

// Lines writes windows row by row. The caller calls Begin once per window, Rows for each of its pages, and End
// after the last page.
type Lines interface {
	Begin(v *reading.View) error
	Rows(v *reading.View) error
	End(v *reading.View, rows int64) error
	// Done ends an export of several windows.
	Done(windows, rows int64) error
}

// LineFormat selects the format of an export.
type LineFormat struct {
	Name    string // ndjson or csv
	Several bool   // an export of several windows: each row names its window
	Raw     bool   // CSV only: do not escape ids and names that a spreadsheet would read as formulas
}

// NewLines returns a writer of lines in a format.
func NewLines(w io.Writer, f LineFormat) Lines {
	if f.Name == "csv" {
		return &csvLines{Writer: csv.NewWriter(w), several: f.Several, raw: f.Raw}
	}
	n := &ndjson{json.NewEncoder(safejson.NewWriter(w)), f.Several}
	n.SetEscapeHTML(false)
	return n
}

// exportEnd is a window's last line in NDJSON. An export without it was cut off.
type exportEnd struct {
	End    bool         `json:"end"`
	Rows   int64        `json:"rows"`
	Window windowAnswer `json:"window"`
	Status status       `json:"status"` // of the last page
}

// exportDone is the last line of an export of several windows.
type exportDone struct {
	Done    bool  `json:"done"`
	Windows int64 `json:"windows"`
	Rows    int64 `json:"rows"`
}

// rowOf is a row in an export of several windows.
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
	return n.Encode(&exportEnd{true, rows, windowOf(v), statusOf(v, nil)})
}

func (n *ndjson) Done(windows, rows int64) error {
	return n.Encode(&exportDone{true, windows, rows})
}

// csvLines writes a header line first. In an export of several windows, whose fields may differ, all fields are
// one column that holds a JSON object.
type csvLines struct {
	*csv.Writer
	several bool
	raw     bool
	begun   bool
}

// formulas are the first characters that make a spreadsheet read a cell as a formula, and the apostrophe, which
// escapes them: a cell that begins with an apostrophe is text.
const formulas = "=+-@\t\r\n＝＋－＠'"

// cell returns an id or a name as a cell. The escape is reversible: if a cell begins with an apostrophe, the text
// is the rest of the cell.
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
	if !c.begun { // no window: write the header all the same
		if err := c.Begin(nil); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
