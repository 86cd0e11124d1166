package v1

// Lists of boards and windows.

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sort"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/reading"
)

// boardAnswer is a board that has at least one window.
type boardAnswer struct {
	Board string `json:"board"`
	// Score is the rule that combines a member's events into a standing: sum, best or last.
	Score   string         `json:"score"`
	Fields  []fieldAnswer  `json:"fields"` // the field points alone if the board has the default rule
	Periods []periodAnswer `json:"periods"`
	// Archived: Redis has none of the board's windows.
	Archived bool `json:"archived,omitempty"`
}

type fieldAnswer struct {
	Field string `json:"field"`
	Max   int64  `json:"max"`
	Order string `json:"order"` // most or fewest
}

type periodAnswer struct {
	Period string `json:"period"`
	// Windows is the number of windows that Redis lists. Archived is the number in the archive; some of these may
	// be in Redis, too. First and Last cover both.
	Windows  int64  `json:"windows"`
	Archived int64  `json:"archived_windows,omitempty"`
	First    string `json:"first"`
	Last     string `json:"last"`

	first, last int64 // start times, Unix ms
}

type boardsList struct {
	Boards []boardAnswer `json:"boards"`
	Next   *string       `json:"next_cursor"` // the next page's cursor; null on the last page
	// NoArchive: the archive cannot be read, so windows that only the archive has are missing.
	NoArchive bool `json:"archive_unavailable,omitempty"`
}

const (
	usualBoards = 100
	mostBoards  = 1000
)

// listBoards handles GET /v1/boards.
func (a *api) listBoards(q *request) (*answer, error) {
	limit := q.number("limit", usualBoards, 1, mostBoards)
	if q.err != nil {
		return nil, q.err
	}
	all, err := a.Reader.Listed(q.ctx, "")
	if err != nil {
		return nil, err
	}
	body := boardsList{Boards: []boardAnswer{}}
	var past []store.Kept
	body.NoArchive, err = a.ofArchive(q, func(ctx context.Context) (err error) {
		past, err = a.Reader.Archived(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	after := q.query.Get("cursor")
	all, past = from(all, after, listedBoard), from(past, after, keptBoard)
	for len(all) > 0 || len(past) > 0 {
		var name string
		switch {
		case len(all) == 0:
			name = past[0].Board
		case len(past) == 0:
			name = all[0].Board
		default:
			name = min(all[0].Board, past[0].Board)
		}
		if len(body.Boards) == int(limit) {
			next := body.Boards[limit-1].Board
			body.Next = &next
			break
		}
		rest, restPast := from(all, name, listedBoard), from(past, name, keptBoard)
		body.Boards = append(body.Boards, a.board(name, all[:len(all)-len(rest)], past[:len(past)-len(restPast)]))
		all, past = rest, restPast
	}
	return &answer{body: &body, tagged: true}, nil
}

func listedBoard(w *boards.Listed) string { return w.Board }
func keptBoard(k *store.Kept) string      { return k.Board }

// from returns the elements that follow a board, in a list sorted by board.
func from[T any](all []T, after string, board func(*T) string) []T {
	return all[sort.Search(len(all), func(i int) bool { return board(&all[i]) > after }):]
}

// ofArchive runs a read of the archive, for at most half of the request's time. If the archive cannot be read, it
// returns away and no error: the caller's list then lacks the archive's part and reports that.
func (a *api) ofArchive(q *request, read func(context.Context) error) (away bool, err error) {
	ctx, cancel := context.WithTimeout(q.ctx, a.Timeout/2)
	defer cancel()
	err = read(ctx)
	if _, ok := errors.AsType[*reading.ArchiveError](err); ok {
		a.log.Warn("a list lacks archived windows", zap.Error(err))
		return true, nil
	}
	return false, err
}

// board combines the board's windows in Redis with those in the archive.
func (a *api) board(name string, all []boards.Listed, past []store.Kept) boardAnswer {
	rule := a.Reader.Rule(name)
	b := boardAnswer{Board: name, Score: string(rule.Score), Periods: []periodAnswer{}, Archived: len(all) == 0}
	for _, f := range rule.Fields.List() {
		order := "most"
		if f.Fewest {
			order = "fewest"
		}
		b.Fields = append(b.Fields, fieldAnswer{f.Name, f.Max, order})
	}
	for i := range all {
		w := &all[i]
		if n := len(b.Periods); n == 0 || b.Periods[n-1].Period != w.Period {
			b.Periods = append(b.Periods, periodAnswer{Period: w.Period, First: w.Name, first: w.Start})
		}
		p := &b.Periods[len(b.Periods)-1]
		p.Windows, p.Last, p.last = p.Windows+1, w.Name, w.Start
	}
	for _, k := range past {
		i := slices.IndexFunc(b.Periods, func(p periodAnswer) bool { return p.Period == k.Period })
		if i < 0 {
			i = len(b.Periods)
			b.Periods = append(b.Periods, periodAnswer{Period: k.Period, First: k.First, first: k.Starts.UnixMilli(), Last: k.Last, last: k.LastStart.UnixMilli()})
		}
		p := &b.Periods[i]
		p.Archived = k.Windows
		if k.Starts.UnixMilli() < p.first {
			p.First = k.First
		}
		if k.LastStart.UnixMilli() > p.last {
			p.Last = k.Last
		}
	}
	return b
}

// listedWindow is a window in the list.
type listedWindow struct {
	Window      string `json:"window"`
	Start       string `json:"start"`
	End         string `json:"end"`
	SecondsLeft int64  `json:"seconds_left"`
	Current     bool   `json:"current"`
	Members     *int64 `json:"members"`            // null if Redis has lost the window
	Archived    bool   `json:"archived,omitempty"` // the window is in the archive but not in Redis

	start int64
}

type windowsAnswer struct {
	Board    string         `json:"board"`
	Period   string         `json:"period"`
	TimeZone string         `json:"time_zone"`
	Current  *string        `json:"current"`  // null before the first window
	Previous *string        `json:"previous"` // null if there is no previous window
	Windows  []listedWindow `json:"windows"`  // latest first
	// NoArchive: the archive cannot be read, so windows that only the archive has are missing.
	NoArchive bool `json:"archive_unavailable,omitempty"`
}

// listWindows handles GET …/windows.
func (a *api) listWindows(q *request) (*answer, error) {
	limit := q.number("limit", usualBoards, 1, mostBoards)
	if q.err != nil {
		return nil, q.err
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
	live := slices.DeleteFunc(slices.Clone(all), func(w boards.Listed) bool { return w.Period != period })
	slices.SortFunc(live, func(a, b boards.Listed) int { return cmp.Compare(b.Start, a.Start) })
	some := live[:min(len(live), int(limit))]
	members, err := a.Reader.Boards().MembersOf(q.ctx, some)
	if err != nil {
		return nil, err
	}
	for i, w := range some {
		l := listedWindow{Window: w.Name, start: w.Start, End: timeMS(w.End), SecondsLeft: secondsLeft(now, w.End)}
		if members[i] > 0 { // Redis deletes empty sorted sets
			l.Members = &members[i]
		}
		body.Windows = append(body.Windows, l)
	}
	if err := a.addArchived(q, &body, live, int(limit), now); err != nil {
		return nil, err
	}
	for i := range body.Windows {
		l := &body.Windows[i]
		l.Start, l.Current = timeMS(l.start), body.Current != nil && *body.Current == l.Window
	}
	return &answer{body: &body}, nil
}

// secondsLeft returns the seconds until a window's end, rounded up, and 0 after it. end is in Unix ms.
func secondsLeft(now time.Time, end int64) int64 {
	return max(0, (end-now.UnixMilli()+999)/1000)
}

// addArchived adds the windows that only the archive has, and keeps the latest limit windows of both.
func (a *api) addArchived(q *request, body *windowsAnswer, live []boards.Listed, limit int, now time.Time) error {
	var past []store.Window
	var err error
	body.NoArchive, err = a.ofArchive(q, func(ctx context.Context) (err error) {
		past, err = a.Reader.ArchivedWindows(ctx, body.Board, body.Period, store.Place{}, limit)
		return err
	})
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(live))
	for _, w := range live {
		known[w.Name] = true
	}
	for i := range past {
		w := &past[i]
		if known[w.Name] {
			continue
		}
		body.Windows = append(body.Windows, listedWindow{
			Window: w.Name, start: w.Start.UnixMilli(), End: timeMS(w.End.UnixMilli()), SecondsLeft: secondsLeft(now, w.End.UnixMilli()), Members: &w.Members, Archived: true,
		})
	}
	slices.SortStableFunc(body.Windows, func(a, b listedWindow) int { return cmp.Compare(b.start, a.start) })
	body.Windows = body.Windows[:min(len(body.Windows), limit)]
	return nil
}

// windowOnly is a window without rows.
type windowOnly struct {
	Window windowAnswer `json:"window"`
	Status status       `json:"status"`
}

// getWindow handles GET …/windows/{window}.
func (a *api) getWindow(q *request) (*answer, error) {
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	v, err := a.Reader.Window(q.ctx, t)
	if err != nil {
		return nil, err
	}
	body := windowOnly{windowOf(&v), statusOf(&v, reached)}
	return a.keep(q, &v, answerOf(&body, &v, body.Status.Reached)), nil
}

// getOpenAPI handles GET /v1/openapi.json.
func (a *api) getOpenAPI(*request) (*answer, error) {
	return &answer{body: rawJSON(Document), tagged: true, cache: "public, max-age=3600"}, nil
}

// problemAnswer describes a problem type.
type problemAnswer struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

// getProblem handles GET /v1/problems/{problem}.
func (a *api) getProblem(q *request) (*answer, error) {
	status, ok := statuses[q.PathValue("problem")]
	if !ok {
		return nil, problemf(notFound, "Unknown problem type")
	}
	return &answer{body: &problemAnswer{"/v1/problems/" + q.PathValue("problem"), http.StatusText(status), status}}, nil
}

// rawJSON is text that is already JSON.
type rawJSON []byte

// MarshalJSON returns the text unchanged.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }
