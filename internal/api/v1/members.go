package v1

// Members: one member with its neighbours, several members ranked among themselves, and one member on several
// boards.

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// memberAnswer is a member's standing in a window.
type memberAnswer struct {
	Window   windowAnswer `json:"window"`
	Status   status       `json:"status"`
	Ranks    string       `json:"ranks"`
	Standing standing     `json:"standing"`
	// Percentile is the share of members that rank below, in percent; null if the member has no standing.
	Percentile *float64 `json:"percentile"`
	// Above is the member with the next better rank, and the distance to it; null for the first.
	Above *above `json:"above"`
}

// above is the row with the next better rank.
type above struct {
	standing
	// PointsToNextRank is how many more points the member needs to pass this one; null on a board that has fields.
	PointsToNextRank *int64 `json:"points_to_next_rank"`
}

// getMember handles GET …/members/{member}.
func (a *api) getMember(q *request) (*answer, error) {
	id := q.member(q.PathValue("member"))
	style := q.choice("ranks", ordinal, competition, modified)
	shadow := q.choice("shadow", "false", "true")
	if shadow == "true" && style != ordinal {
		return nil, wrong("shadow", "shadow=true requires ranks=ordinal")
	}
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	var v reading.View
	if shadow == "true" {
		v, err = a.Reader.Shadow(q.ctx, t, id)
	} else {
		v, err = a.Reader.Beside(q.ctx, t, id, style != ordinal)
	}
	if v, err = unlessLost(v, err); err != nil {
		return nil, err
	}
	body := memberAnswer{Window: windowOf(&v), Status: statusOf(&v, reached), Ranks: style, Standing: standing{Member: id}}
	body.of(&v, id, style)
	return a.keep(q, &v, answerOf(&body, &v, body.Status.Reached)), nil
}

// of fills in the member's row and the row above it.
func (m *memberAnswer) of(v *reading.View, id, style string) {
	at := slices.IndexFunc(v.Standings, func(st ranking.Standing) bool { return st.Member == id })
	if at < 0 {
		return
	}
	st := &v.Standings[at]
	m.Standing = row(v, st, style, 0)
	if st.Rank == 0 {
		return
	}
	percentile := share(v.Members-min(st.Rank, v.Members), v.Members)
	m.Percentile = &percentile
	if at > 0 {
		next := &v.Standings[at-1]
		m.Above = &above{standing: row(v, next, style, 0)}
		if v.Fields.Len() == 0 {
			m.Above.PointsToNextRank = new(next.Points - st.Points + 1) // on equal points the earlier member is ahead
		}
	}
}

// share returns part/whole in percent, rounded down to two decimals, so that it never shows a member as better
// than it is.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Floor(float64(part)*1e4/float64(whole)) / 100
}

// aroundAnswer is a member's row with the rows above and below it.
type aroundAnswer struct {
	Window    windowAnswer `json:"window"`
	Status    status       `json:"status"`
	Ranks     string       `json:"ranks"`
	Member    string       `json:"member"`
	Standings []standing   `json:"standings"`
}

const (
	usualAround = 5
	mostAround  = 500
)

// listAround handles GET …/around.
func (a *api) listAround(q *request) (*answer, error) {
	if !q.query.Has("member") {
		return nil, wrong("member", "member is required")
	}
	id := q.member(q.query.Get("member"))
	n := q.number("n", usualAround, 0, mostAround)
	ifMissing := q.choice("if_missing", "error", "top", "bottom")
	style := q.choice("ranks", ordinal, competition, modified)
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	v, err := a.Reader.Around(q.ctx, t, id, int(n), style != ordinal)
	if err == nil && v.Lost == "" && !slices.ContainsFunc(v.Standings, func(st ranking.Standing) bool { return st.Rank > 0 }) {
		if ifMissing == "error" {
			p := problemf(notFound, "The member has no standing in %s %s %s. if_missing=top and if_missing=bottom return an end of the board instead", v.Name, v.Window.Period, v.Window.Name)
			p.Parameter = "member"
			return nil, p
		}
		v, err = a.Reader.Rows(q.ctx, v.Target, reading.Page{Limit: int(2*n + 1), Bottom: ifMissing == "bottom", Ties: style != ordinal})
	}
	if v, err = unlessLost(v, err); err != nil {
		return nil, err
	}
	body := aroundAnswer{Window: windowOf(&v), Status: statusOf(&v, reached), Ranks: style, Member: id, Standings: rows(&v, style, nil)}
	return a.keep(q, &v, answerOf(&body, &v, body.Status.Reached)), nil
}

// lookup is the body of POST …/members/lookup.
type lookup struct {
	Members memberIDs `json:"members"`
}

// lookupAnswer is the standings of the requested members, ranked among themselves.
type lookupAnswer struct {
	Window    windowAnswer `json:"window"`
	Status    status       `json:"status"`
	Ranks     string       `json:"ranks"`
	Standings []standing   `json:"standings"` // by rank, each with its place among them
	Absent    []string     `json:"absent"`    // members without a standing
}

// lookUpMembers handles POST …/members/lookup.
func (a *api) lookUpMembers(q *request) (*answer, error) {
	style := q.choice("ranks", ordinal, competition, modified)
	ids, err := q.members()
	if err != nil {
		return nil, err
	}
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	v, err := unlessLost(a.Reader.Members(q.ctx, t, style != ordinal, ids...))
	if err != nil {
		return nil, err
	}
	body := lookupAnswer{Window: windowOf(&v), Status: statusOf(&v, reached), Ranks: style, Standings: []standing{}, Absent: []string{}}
	found := slices.DeleteFunc(v.Standings, func(st ranking.Standing) bool {
		if st.Rank == 0 {
			body.Absent = append(body.Absent, st.Member)
		}
		return st.Rank == 0
	})
	if len(v.Standings) == 0 { // none of the members has a standing
		body.Absent = ids
	}
	slices.SortFunc(found, func(a, b ranking.Standing) int { return cmp.Compare(a.Rank, b.Rank) })
	for i := range found {
		s := row(&v, &found[i], style, 0)
		s.Place = new(place(found, i, style))
		body.Standings = append(body.Standings, s)
	}
	return &answer{body: &body}, nil
}

// place returns the rank of all[i] among all, which are sorted by rank.
func place(all []ranking.Standing, i int, style string) int64 {
	switch style {
	case competition:
		for i > 0 && sameTuple(&all[i-1], &all[i]) {
			i--
		}
	case modified:
		for i+1 < len(all) && sameTuple(&all[i], &all[i+1]) {
			i++
		}
	}
	return int64(i + 1)
}

// members reads the body of a lookup. A repeated id counts once.
func (q *request) members() ([]string, error) {
	var body lookup
	if err := q.body(&body, `{"members": ["…"]}`); err != nil {
		return nil, err
	}
	if len(body.Members) == 0 {
		return nil, wrong("body", "members must have 1 to %d ids", reading.MostMembers)
	}
	known := make(map[string]bool, len(body.Members))
	return slices.DeleteFunc(body.Members, func(id string) bool {
		twice := known[id]
		known[id] = true
		return twice
	}), nil
}

// boardsAnswer is a member's standings on several boards.
type boardsAnswer struct {
	Member    string         `json:"member"`
	Ranks     string         `json:"ranks"`
	Standings []memberAnswer `json:"standings"`
}

const (
	mostWindows   = 50 // per request
	windowsAtOnce = 8
)

// getMemberOfBoards handles GET /v1/members/{member}.
func (a *api) getMemberOfBoards(q *request) (*answer, error) {
	id := q.member(q.PathValue("member"))
	style := q.choice("ranks", ordinal, competition, modified)
	named := q.choice("window", reading.Current, reading.Previous)
	targets, err := a.targets(q, named)
	if err != nil {
		return nil, err
	}
	body := boardsAnswer{Member: id, Ranks: style, Standings: make([]memberAnswer, len(targets))}
	group, ctx := errgroup.WithContext(q.ctx)
	group.SetLimit(windowsAtOnce)
	for i, t := range targets {
		group.Go(func() error {
			v, err := unlessLost(a.Reader.Beside(ctx, t, id, style != ordinal))
			if err != nil {
				return err
			}
			m := memberAnswer{Window: windowOf(&v), Status: statusOf(&v, nil), Ranks: style, Standing: standing{Member: id}}
			m.of(&v, id, style)
			body.Standings[i] = m
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return &answer{body: &body}, nil
}

// targets returns the windows for the requested boards and periods. It skips periods that a board does not have,
// unless the board has none of the requested periods.
func (a *api) targets(q *request, named string) ([]reading.Target, error) {
	if q.err != nil {
		return nil, q.err
	}
	boards := q.list("boards")
	if boards == nil {
		boards = a.Reader.Named
	}
	if len(boards) == 0 {
		return nil, wrong("boards", "boards is required, since the server has no list of boards")
	}
	periods := q.list("periods")
	if periods == nil {
		for _, p := range a.Reader.Periods {
			periods = append(periods, string(p.Rule.Name()))
		}
	}
	if len(boards)*len(periods) > mostWindows {
		return nil, wrong("boards", "%d boards in %d periods are more than %d windows", len(boards), len(periods), mostWindows)
	}
	var all []reading.Target
	for _, board := range boards {
		var missing error
		some := len(all)
		for _, period := range periods {
			t, err := a.Reader.Target(q.ctx, board, period, named)
			if _, ok := errors.AsType[*reading.NotFoundError](err); ok {
				missing = cmp.Or(missing, err)
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		if len(all) == some && missing != nil {
			return nil, missing
		}
	}
	return all, nil
}
