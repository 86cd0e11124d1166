package v1

// Rows of a window.

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// standing is a row. Its values are null for a member without a standing.
type standing struct {
	// Place is the rank among the members of a lookup.
	Place     *int64          `json:"place,omitempty"`
	Rank      *int64          `json:"rank"`
	Member    string          `json:"member"`
	Name      *string         `json:"name,omitempty"` // if members have names
	Points    *int64          `json:"points"`         // null also on a board that has fields
	Fields    json.RawMessage `json:"fields,omitempty"`
	ReachedAt *string         `json:"reached_at"`
}

// fieldsOf returns a standing's fields as a JSON object, in the board's order; nil on a board that has points.
func fieldsOf(b *ranking.Board, st *ranking.Standing) json.RawMessage {
	if b.Fields.Len() == 0 {
		return nil
	}
	var text []byte
	for i := range b.Fields.Len() {
		text = append(text, "{,"[min(i, 1)])
		text = append(strconv.AppendQuote(text, b.Fields.At(i).Name), ':') // letters, digits and _
		text = strconv.AppendInt(text, st.Tuple[i], 10)
	}
	return append(text, '}')
}

// Ways to rank equal points. In the ordinal ranking the member that reached them first is first, as in Redis.
const (
	ordinal     = "ordinal"     // 1234
	competition = "competition" // 1224
	modified    = "modified"    // 1334
	dense       = "dense"       // 1223; only on pages from the top
)

// row returns a standing of a view, ranked by the style. densely is its dense rank.
func row(v *reading.View, st *ranking.Standing, style string, densely int64) standing {
	s := standing{Member: st.Member}
	if st.Name != "" {
		s.Name = &st.Name
	}
	if st.Rank == 0 {
		return s
	}
	own := &struct { // one allocation, since a page may have a thousand rows
		rank int64
		at   string
	}{st.Rank, timeMS(st.ReachedAt.UnixMilli())}
	switch style {
	case competition:
		own.rank = st.More + 1
	case modified:
		own.rank = st.AtLeast
	case dense:
		own.rank = densely
	}
	s.Rank, s.ReachedAt = &own.rank, &own.at
	if s.Fields = fieldsOf(&v.Board, st); s.Fields == nil {
		s.Points = &st.Points
	}
	return s
}

// rows returns all standings of a view. before holds the dense rank and the points of the row before the first, or
// is nil.
func rows(v *reading.View, style string, before *cursor) []standing {
	all := make([]standing, 0, len(v.Standings))
	densely := int64(0)
	var last *ranking.Standing
	if before != nil {
		densely = before.dense
	}
	for i := range v.Standings {
		st := &v.Standings[i]
		switch {
		case last != nil && sameTuple(last, st):
		case last == nil && before != nil && before.same(v, st):
		default:
			densely++
		}
		last = st
		all = append(all, row(v, st, style, densely))
	}
	return all
}

func sameTuple(a, b *ranking.Standing) bool { return a.Points == b.Points && a.Tuple == b.Tuple }

// standingsAnswer is a page of a window.
type standingsAnswer struct {
	Window    windowAnswer `json:"window"`
	Status    status       `json:"status"`
	Ranks     string       `json:"ranks"`
	InRange   *int64       `json:"in_range,omitempty"` // the number of members between min_points and max_points
	Standings []standing   `json:"standings"`
	// Next is the next page's cursor; null on the last page.
	Next *string `json:"next_cursor"`
}

const (
	usualLimit = 10
	mostLimit  = 1000
)

// listStandings handles GET …/standings.
func (a *api) listStandings(q *request) (*answer, error) {
	limit := q.number("limit", usualLimit, 1, mostLimit)
	offset := q.number("offset", 0, 0, math.MaxInt32)
	from := q.choice("from", "top", "bottom")
	style := q.choice("ranks", ordinal, competition, modified, dense)
	page := reading.Page{Limit: int(limit), Offset: int(offset), Bottom: from == "bottom", Ties: style == competition || style == modified}
	if err := q.points(a, &page); err != nil {
		return nil, err
	}
	t, reached, err := q.target(a)
	if err != nil {
		return nil, err
	}
	var before *cursor
	if text := q.query.Get("cursor"); q.query.Has("cursor") {
		if before, err = readCursor(text, t); err != nil {
			return nil, err
		}
		t.Named, t.Window = before.window.Name, before.window
		page.After = &before.pivot
	}
	switch {
	case before != nil && (offset > 0 || page.Bottom):
		return nil, wrong("cursor", "cursor excludes offset and from=bottom")
	case page.Points != nil && page.Bottom:
		return nil, wrong("from", "from=bottom excludes min_points and max_points")
	case style == dense && (offset > 0 || page.Bottom || page.Points != nil || before != nil && before.dense == 0):
		return nil, wrong("ranks", "ranks=dense excludes offset, from=bottom and a range of points, and cursor must be the next_cursor of a dense page")
	}
	v, err := unlessLost(a.Reader.Rows(q.ctx, t, page))
	if err != nil {
		return nil, err
	}
	body := standingsAnswer{Window: windowOf(&v), Status: statusOf(&v, reached), Ranks: style, Standings: rows(&v, style, before)}
	if page.Points != nil {
		body.InRange = &v.InRange
	}
	if n := len(v.Standings); n == page.Limit && !page.Bottom && v.Standings[n-1].Rank < v.Members {
		next := cursor{board: v.Name, window: v.Window, pivot: v.Standings[n-1].Pivot()}
		if style == dense {
			next.dense = *body.Standings[n-1].Rank
		}
		text := next.String()
		body.Next = &text
	}
	return a.keep(q, &v, answerOf(&body, &v, body.Status.Reached)), nil
}

// points reads min_points and max_points.
func (q *request) points(a *api, page *reading.Page) error {
	least := q.number("min_points", math.MinInt64, math.MinInt64, math.MaxInt64)
	most := q.number("max_points", math.MaxInt64, math.MinInt64, math.MaxInt64)
	if !q.query.Has("min_points") && !q.query.Has("max_points") {
		return nil
	}
	if least > most {
		return wrong("min_points", "min_points, %d, exceeds max_points, %d", least, most)
	}
	if a.Reader.Fields(q.PathValue("board")).Len() > 0 {
		return wrong("min_points", "The board has fields, not points. Ranges require a board with the default rule")
	}
	page.Points = &[2]int64{least, most}
	return nil
}

// answerOf returns an answer that shows a window as it was read.
func answerOf(body any, v *reading.View, reached *bool) *answer {
	return &answer{body: body, shows: v, reached: reached}
}
