package v1

// Which boards and windows there are.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/reading"
)

// boardAnswer is a board that has a window.
type boardAnswer struct {
	Board string `json:"board"`
	// Score is how a member's events become a standing: sum, best or last.
	Score   string         `json:"score"`
	Fields  []fieldAnswer  `json:"fields"` // of a board by the default rule points alone
	Periods []periodAnswer `json:"periods"`
}

type fieldAnswer struct {
	Field string `json:"field"`
	Max   int64  `json:"max"`
	Order string `json:"order"` // most or fewest
}

type periodAnswer struct {
	Period string `json:"period"`
	// Windows are how many are listed, by the first and last of which they go.
	Windows int64  `json:"windows"`
	First   string `json:"first"`
	Last    string `json:"last"`
}

type boardsList struct {
	Boards []boardAnswer `json:"boards"`
	Next   *string       `json:"next"` // what after takes; null where there are no more
}

const (
	usualBoards = 100
	mostBoards  = 1000
)

// listBoards is GET /v1/boards.
func (a *api) listBoards(q *request) (*answer, error) {
	limit, err := q.number("limit", usualBoards, 1, mostBoards)
	if err != nil {
		return nil, err
	}
	all, err := a.Reader.Listed(q.ctx, "")
	if err != nil {
		return nil, err
	}
	after := q.query.Get("after")
	from, found := slices.BinarySearchFunc(all, after, func(w boards.Listed, after string) int { return strings.Compare(w.Board, after) })
	for found && from < len(all) && all[from].Board == after {
		from++
	}
	body := boardsList{Boards: []boardAnswer{}}
	for from < len(all) {
		to := from
		for to < len(all) && all[to].Board == all[from].Board {
			to++
		}
		if len(body.Boards) == int(limit) {
			next := body.Boards[limit-1].Board
			body.Next = &next
			break
		}
		body.Boards = append(body.Boards, a.board(all[from:to]))
		from = to
	}
	return &answer{body: &body, tagged: true}, nil
}

// board is one by its listed windows.
func (a *api) board(all []boards.Listed) boardAnswer {
	rule := a.Reader.Rule(all[0].Board)
	b := boardAnswer{Board: all[0].Board, Score: string(rule.Score), Periods: []periodAnswer{}}
	for _, f := range rule.Fields.List() {
		order := "most"
		if f.Fewest {
			order = "fewest"
		}
		b.Fields = append(b.Fields, fieldAnswer{f.Name, f.Max, order})
	}
	for i := range all {
		if n := len(b.Periods); n == 0 || b.Periods[n-1].Period != all[i].Period {
			b.Periods = append(b.Periods, periodAnswer{Period: all[i].Period, First: all[i].Name})
		}
		p := &b.Periods[len(b.Periods)-1]
		p.Windows, p.Last = p.Windows+1, all[i].Name
	}
	return b
}

// listedWindow is a window of the listing.
type listedWindow struct {
	Window      string `json:"window"`
	Start       string `json:"start"`
	End         string `json:"end"`
	SecondsLeft int64  `json:"seconds_left"`
	Current     bool   `json:"current"`
	Members     *int64 `json:"members"` // null where Redis has lost the window
}

type windowsAnswer struct {
	Board    string         `json:"board"`
	Period   string         `json:"period"`
	TimeZone string         `json:"time_zone"`
	Current  *string        `json:"current"`  // null before the first
	Previous *string        `json:"previous"` // null where there is none
	Windows  []listedWindow `json:"windows"`  // the latest first
}

// listWindows is GET …/windows.
func (a *api) listWindows(q *request) (*answer, error) {
	limit, err := q.number("limit", usualBoards, 1, mostBoards)
	if err != nil {
		return nil, err
	}
	board, period := q.PathValue("board"), q.PathValue("period")
	p, err := a.Reader.Period(board, period)
	if err != nil {
		return nil, err
	}
	all, err := a.Reader.Listed(q.ctx, board)
	if err != nil {
		return nil, err
	}
	now, err := a.Reader.Now(q.ctx)
	if err != nil {
		return nil, err
	}
	body := windowsAnswer{Board: board, Period: period, TimeZone: p.Zone, Windows: []listedWindow{}}
	for _, named := range []struct {
		name string
		to   **string
	}{{reading.Current, &body.Current}, {reading.Previous, &body.Previous}} {
		if t, err := a.Reader.Target(q.ctx, board, period, named.name); err == nil {
			*named.to = &t.Window.Name
		}
	}
	some := slices.DeleteFunc(slices.Clone(all), func(w boards.Listed) bool { return w.Period != period })
	slices.SortFunc(some, func(a, b boards.Listed) int { return cmp.Compare(b.Start, a.Start) })
	some = some[:min(len(some), int(limit))]
	members, err := a.Reader.Boards().MembersOf(q.ctx, some)
	if err != nil {
		return nil, err
	}
	for i, w := range some {
		l := listedWindow{
			Window: w.Name, Start: timeMS(w.Start), End: timeMS(w.End), Current: body.Current != nil && *body.Current == w.Name,
			SecondsLeft: max(0, (w.End-now.UnixMilli()+999)/1000),
		}
		if members[i] > 0 { // Redis keeps no empty sorted set
			l.Members = &members[i]
		}
		body.Windows = append(body.Windows, l)
	}
	return &answer{body: &body}, nil
}

// windowOnly is a window without rows.
type windowOnly struct {
	Window windowAnswer `json:"window"`
	Trust  trust        `json:"trust"`
}

// getWindow is GET a window.
func (a *api) getWindow(q *request) (*answer, error) {
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	v, err := a.Reader.Window(q.ctx, t)
	if err != nil {
		return nil, err
	}
	body := windowOnly{windowOf(&v), trustOf(&v, reached)}
	return answerOf(&body, &v, body.Trust.Reached), nil
}

// getOpenAPI is GET /v1/openapi.json.
func (a *api) getOpenAPI(*request) (*answer, error) {
	return &answer{body: rawJSON(Document), tagged: true, cache: "public, max-age=3600"}, nil
}

// problemAnswer is what a problem's type leads to.
type problemAnswer struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

// getProblem is GET /v1/problems/{problem}.
func (a *api) getProblem(q *request) (*answer, error) {
	of, ok := titles[q.PathValue("problem")]
	if !ok {
		return nil, problemf(notFound, "there is no such problem")
	}
	return &answer{body: &problemAnswer{"/v1/problems/" + q.PathValue("problem"), of.title, of.status}}, nil
}

// rawJSON is JSON as it is.
type rawJSON []byte

// MarshalJSON returns it.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }
