package v1

// The rank that a number of points would have, and the points that the best n percent need.

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/reading"
)

// rankAnswer is the rank that given points would have in a window.
type rankAnswer struct {
	Window windowAnswer `json:"window"`
	Status status       `json:"status"`
	// Rank is the rank of a member that reaches the points now: below all members that already have as many.
	Rank      int64      `json:"rank"`
	AtOrAbove int64      `json:"members_at_or_above"` // the number of members with at least as many points
	Above     int64      `json:"members_above"`       // the number of members with more points
	Standings []standing `json:"standings"`
}

// percentAnswer is the last member among the best given percent.
type percentAnswer struct {
	Window   windowAnswer `json:"window"`
	Status   status       `json:"status"`
	Percent  float64      `json:"percent"`
	Rank     int64        `json:"rank"` // the last member's rank; 0 if the window is empty
	Standing *standing    `json:"standing"`
}

// getRank handles GET …/rank.
func (a *api) getRank(q *request) (*answer, error) {
	n := q.number("n", 0, 0, mostAround)
	given := 0
	for _, name := range []string{"points", "fields", "percent"} {
		if q.query.Has(name) {
			given++
		}
	}
	if given != 1 {
		return nil, wrong("points", "Give exactly one of points, fields and percent")
	}
	if q.query.Has("percent") {
		return a.rankOfPercent(q)
	}
	values, err := q.values(a)
	if err != nil {
		return nil, err
	}
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	v, err := unlessLost(a.Reader.Would(q.ctx, t, values, int(n)))
	if errors.Is(err, reading.ErrRange) {
		return nil, wrong("points", "The values are out of range for this board: %v", err)
	}
	if err != nil {
		return nil, err
	}
	body := rankAnswer{Window: windowOf(&v), Status: statusOf(&v, reached), Rank: v.Place + 1, Standings: rows(&v, ordinal, nil)}
	if len(v.Counts) == 2 {
		body.AtOrAbove, body.Above = v.Counts[0], v.Counts[1]
	}
	return a.keep(q, &v, answerOf(&body, &v, body.Status.Reached)), nil
}

// values reads the parameter points or fields, as in fields=stage:42,revives:3.
func (q *request) values(a *api) ([]int64, error) {
	of := a.Reader.Fields(q.PathValue("board"))
	if q.query.Has("points") {
		if of.Len() > 0 {
			return nil, wrong("points", "The board has fields, not points. Use fields=%s:…", of.At(0).Name)
		}
		return []int64{q.number("points", 0, math.MinInt64, math.MaxInt64)}, nil
	}
	if of.Len() == 0 {
		return nil, wrong("fields", "The board has points, not fields. Use points")
	}
	values, given := make([]int64, of.Len()), map[string]bool{}
	for _, pair := range q.list("fields") {
		name, text, _ := strings.Cut(pair, ":")
		i := of.Index(name)
		value, err := strconv.ParseInt(text, 10, 64)
		if i < 0 || err != nil || given[name] {
			return nil, wrong("fields", "Unknown or repeated field, or no whole number: %s. Use the form %s:1", quoted(pair), of.At(0).Name)
		}
		values[i], given[name] = value, true
	}
	if len(given) != of.Len() {
		return nil, wrong("fields", "Give all %d fields of this board: %v", of.Len(), of)
	}
	return values, nil
}

// rankOfPercent finds the last member among the best given percent. It first reads the number of members, then the
// member with that rank, so the two may be of different instants.
func (a *api) rankOfPercent(q *request) (*answer, error) {
	percent, err := strconv.ParseFloat(q.query.Get("percent"), 64)
	if err != nil || !(percent > 0 && percent <= 100) {
		return nil, wrong("percent", "percent must be a number above 0 and at most 100, not %s", quoted(q.query.Get("percent")))
	}
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	v, err := a.Reader.Window(q.ctx, t)
	if err != nil {
		return nil, err
	}
	revision := v.Revision
	rank := int64(math.Ceil(float64(v.Members) * percent / 100))
	if rank > 0 {
		if v, err = a.Reader.Rows(q.ctx, v.Target, reading.Page{Offset: int(rank - 1), Limit: 1}); err != nil {
			return nil, err
		}
	}
	if v, err = unlessLost(v, nil); err != nil {
		return nil, err
	}
	body := percentAnswer{Window: windowOf(&v), Status: statusOf(&v, reached), Percent: percent, Rank: rank}
	if len(v.Standings) > 0 {
		s := row(&v, &v.Standings[0], ordinal, 0)
		body.Standing = &s
	}
	is := answerOf(&body, &v, body.Status.Reached)
	if v.Revision == revision {
		a.keep(q, &v, is)
	}
	return is, nil
}
