package produce

// This file implements --check: it reports what would become of each line, with the consumer's decoder and
// settings. It publishes nothing, and queries neither Kafka nor Redis.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	boardrules "github.com/standings/standings/internal/rules"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// The results of a line.
const (
	lineCounted    = "counted"
	lineLate       = "late"
	lineEarly      = "early"
	lineDuplicate  = "duplicate"
	lineDeadLetter = "dead_letter"
	lineRefused    = "refused" // produce would stop at this line
)

// report is the JSON; docs/json.md describes its fields.
type report struct {
	Lines       []lineReport `json:"lines"`
	Counted     int64        `json:"counted"`
	Late        int64        `json:"late"`
	Early       int64        `json:"early"`
	Duplicates  int64        `json:"duplicates"`
	DeadLetters int64        `json:"dead_letters"`
	Refused     int64        `json:"refused"`
}

type lineReport struct {
	Line    int64                     `json:"line"`
	Result  string                    `json:"result"`
	Reason  *string                   `json:"reason"`
	Message *string                   `json:"message"`
	Member  *string                   `json:"member"`
	Points  *int64                    `json:"points"`           // null if no board counts points
	Fields  map[string]*fields.Values `json:"fields,omitempty"` // by board, for boards with rules of their own
	At      *string                   `json:"at"`
	Boards  []string                  `json:"boards"`
	Windows []windowReport            `json:"windows"`
}

type windowReport struct {
	Period string `json:"period"`
	Window string `json:"window"`
}

// lineChecker judges a record as a worker would.
type lineChecker struct {
	decoder *event.Decoder
	boards  boardrules.Boards
	rules   fold.Rules
	now     time.Time

	// For event.duplicates: the number of records in which a duplicate is searched, and where each id was
	// seen last.
	lookBack int64
	last     map[duplicates.ID]lastLine
	records  int64 // number of records so far
}

// lastLine is the position of an event: its number among the records, and its line in the file.
type lastLine struct{ record, line int64 }

func newLineChecker(cfg *config.Config) (*lineChecker, error) {
	c, err := app.CountingOf(cfg)
	if err != nil {
		return nil, err
	}
	return &lineChecker{
		decoder: event.NewDecoder(c.Events), boards: c.Events.Others, rules: c.Windows, now: time.Now(),
		lookBack: cfg.Duplicates, last: map[duplicates.ID]lastLine{},
	}, nil
}

func (c *lineChecker) check(o outgoing, line int) lineReport {
	c.records++
	at := c.now
	if !o.at.IsZero() {
		at = o.at
	}
	var h event.Headers
	for _, header := range o.headers {
		h.Note([]byte(header.Key), header.Value)
	}
	var e event.Event
	if bad := c.decoder.DecodeWith(&h, o.value, at.UnixMilli(), &e); bad != nil {
		return notCounted(lineDeadLetter, string(bad.Reason), bad.Message)
	}
	windows, result, err := c.rules.Windows(e.Boards, e.Time, at.UnixMilli())
	if err != nil {
		return notCounted(lineDeadLetter, string(event.BadTime), err.Error())
	}
	r := lineReport{Result: lineCounted, Member: new(string(e.User)), Points: &e.Points, At: new(units.TimeMS(e.Time)), Boards: []string{}, Windows: []windowReport{}}
	if e.Tuples != nil {
		r.Points = nil
	}
	for i, board := range e.Boards {
		r.Boards = append(r.Boards, string(board))
		switch rule := c.boards.Of(string(board)); {
		case e.Tuples == nil:
		case rule == nil:
			r.Points = &e.Points
		default:
			if r.Fields == nil {
				r.Fields = map[string]*fields.Values{}
			}
			r.Fields[string(board)] = fields.Of(rule.Fields, e.Tuples[i])
		}
	}
	for _, w := range windows {
		r.Windows = append(r.Windows, windowReport{string(w.Period), w.Name})
	}
	switch result {
	case fold.Late:
		r.Result = lineLate
		r.Message = new(fmt.Sprintf("no window takes it: its time is %s, and its windows ended more than their lateness ago", *r.At))
	case fold.Early:
		r.Result = lineEarly
		r.Message = new(fmt.Sprintf("no window takes it: its time is %s, before the first window of every period", *r.At))
	}
	if before, ok := c.repeats(&e, line); ok {
		r.Result, r.Windows = lineDuplicate, []windowReport{}
		r.Message = new(fmt.Sprintf("line %d has the same event_id and user_id, so this line does not count if both go to one partition", before))
	}
	return r
}

// repeats returns the line that an event repeats. It assumes that the partition receives no other records,
// and it does not read the topic.
func (c *lineChecker) repeats(e *event.Event, line int) (before int64, found bool) {
	id := c.decoder.ID()
	if c.lookBack == 0 || len(id) == 0 {
		return 0, false
	}
	key := duplicates.Of(id, e.User)
	last, found := c.last[key]
	c.last[key] = lastLine{c.records, int64(line)}
	return last.line, found && c.records-last.record <= c.lookBack
}

func notCounted(result, reason, message string) lineReport {
	r := lineReport{Result: result, Message: &message, Boards: []string{}, Windows: []windowReport{}}
	if reason != "" {
		r.Reason = &reason
	}
	return r
}

// errNotAll is the answer that not every line would count.
var errNotAll = errors.New("not every line would count")

func checkLines(ctx context.Context, p *cli.Program, f *flags, cfg *config.Config) error {
	checker, err := newLineChecker(cfg)
	if err != nil {
		return err
	}
	from, closeLines, err := openLines(ctx, p, f)
	if err != nil {
		return err
	}
	defer closeLines()
	from.raw = true // the decoder also checks values that are not JSON objects
	report := report{Lines: []lineReport{}}
	width, _ := terminal.Width(p.Stdout)
	for {
		r, err := checkNext(from, checker)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		report.count(&r)
		if f.asJSON {
			report.Lines = append(report.Lines, r)
		} else if err := terminal.Write(p.Stdout, r.text(width)+"\n"); err != nil {
			return err
		}
	}
	if f.asJSON {
		err = cli.WriteJSON(p.Stdout, report)
	} else {
		err = terminal.Write(p.Stdout, report.text(from.number))
	}
	if err == nil && report.DeadLetters+report.Refused > 0 {
		err = fmt.Errorf("%w: %s would be dead letters, and %s refused", errNotAll, units.Plural(report.DeadLetters, "line"), units.Thousands(report.Refused))
	}
	return err
}

// checkNext checks the next line that is not blank. An error comes from the source.
func checkNext(from *lines, checker *lineChecker) (lineReport, error) {
	o, err := from.next()
	var r lineReport
	switch {
	case errors.As(err, new(*lineError)):
		r = notCounted(lineRefused, "", err.Error())
	case err != nil:
		return r, err
	default:
		r = checker.check(o, from.number)
	}
	r.Line = int64(from.number)
	return r, nil
}

func (c *report) count(r *lineReport) {
	*map[string]*int64{
		lineCounted: &c.Counted, lineLate: &c.Late, lineEarly: &c.Early,
		lineDuplicate: &c.Duplicates, lineDeadLetter: &c.DeadLetters, lineRefused: &c.Refused,
	}[r.Result]++
}

// text returns a line for people: the line's number, the result, and the windows or the reason.
func (r *lineReport) text(width int) string {
	result := r.Result
	var what string
	if r.Reason != nil {
		result = *r.Reason // the reason, as in dead-letters list
	}
	if r.Message != nil {
		what = terminal.Plain(*r.Message)
	} else {
		var names []string
		for _, w := range r.Windows {
			names = append(names, w.Period+" "+w.Window)
		}
		what = fmt.Sprintf("%s of %s on %s: %s", r.counted(), terminal.Plain(*r.Member), terminal.Plain(strings.Join(r.Boards, ", ")), strings.Join(names, ", "))
	}
	line := fmt.Sprintf("%6d  %-13s  %s", r.Line, result, what)
	if width > 0 {
		line = terminal.Cut(line, width)
	}
	return line
}

// counted returns what the boards count: 25 points, or stage 42, revives 3.
func (r *lineReport) counted() string {
	var all []string
	if r.Points != nil {
		all = append(all, units.Thousands(*r.Points)+" points")
	}
	for _, board := range r.Boards {
		if v := r.Fields[board]; v != nil && !slices.Contains(all, v.String()) {
			all = append(all, v.String())
		}
	}
	return strings.Join(all, "; ")
}

func (c *report) text(lines int) string {
	s := fmt.Sprintf("\n%s: %s would be counted, %s late, %s dead letters", units.Plural(int64(lines), "line"),
		units.Thousands(c.Counted), units.Thousands(c.Late), units.Thousands(c.DeadLetters))
	for _, more := range []struct {
		n    int64
		what string
	}{{c.Early, ", %s early"}, {c.Duplicates, ", %s duplicates"}, {c.Refused, "; %s would be refused by produce"}} {
		if more.n > 0 {
			s += fmt.Sprintf(more.what, units.Thousands(more.n))
		}
	}
	return s + "\n"
}
