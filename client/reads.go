package client

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// below is a path below a window.
func (r Ref) below(parts ...string) (string, error) {
	window := r.Window
	if window == "" {
		window = Current
	}
	return pathOf(append([]string{"boards", r.Board, "periods", r.Period, "windows", window}, parts...)...)
}

// Boards are the boards that have a window, by name, as of at most five seconds ago. An error ends
// them.
func (c *Client) Boards(ctx context.Context) iter.Seq2[Board, error] {
	type list struct {
		Boards []Board `json:"boards"`
		Next   string  `json:"next"`
	}
	return func(yield func(Board, error) bool) {
		p := parameters{map[string][]string{}}
		p.number("limit", 1000)
		for {
			l, err := get[list](ctx, c, &request{path: "/v1/boards", query: p.Values})
			if err != nil {
				yield(Board{}, err)
				return
			}
			for i := range l.Boards {
				if !yield(l.Boards[i], nil) {
					return
				}
			}
			if l.Next == "" {
				return
			}
			p.Set("after", l.Next)
		}
	}
}

// Windows are a board's windows, the latest first: at most limit of them, 1 to 1,000; 0 is 100.
func (c *Client) Windows(ctx context.Context, board, period string, limit int) (*Windows, error) {
	path, err := pathOf("boards", board, "periods", period, "windows")
	if err != nil {
		return nil, err
	}
	p := parameters{map[string][]string{}}
	p.number("limit", int64(limit))
	return get[Windows](ctx, c, &request{path: path, query: p.Values})
}

// read sends a request about a window, which waits as the client does.
func read[T any](ctx context.Context, c *Client, r Ref, p parameters, post any, parts ...string) (*T, error) {
	path, err := r.below(parts...)
	if err != nil {
		return nil, err
	}
	p.waiting(c)
	return get[T](ctx, c, &request{path: path, query: p.Values, post: post})
}

// Window is a window without its rows.
func (c *Client) Window(ctx context.Context, r Ref) (*WindowOnly, error) {
	return read[WindowOnly](ctx, c, r, parameters{map[string][]string{}}, nil)
}

// Query is which rows of a window are wanted: by default the first ten.
type Query struct {
	Limit  int  // 1 to 1,000 rows; 0 is 10
	Offset int  // how many rows are left out
	Bottom bool // from the bottom, in the order of ranks all the same
	// After is Page.Next of the page before: these rows go on after its last one, in its window.
	After string
	// MinPoints and MaxPoints are a range; nil: without that end.
	MinPoints, MaxPoints *int64
	Ranks                Ranks
}

func (q *Query) parameters() parameters {
	p := parameters{map[string][]string{}}
	p.number("limit", int64(q.Limit))
	p.number("offset", int64(q.Offset))
	if q.Bottom {
		p.Set("from", "bottom")
	}
	p.text("after", q.After)
	for name, points := range map[string]*int64{"min_points": q.MinPoints, "max_points": q.MaxPoints} {
		if points != nil {
			p.Set(name, strconv.FormatInt(*points, 10))
		}
	}
	p.text("ranks", string(q.Ranks))
	return p
}

// Standings is a page of a window's rows.
func (c *Client) Standings(ctx context.Context, r Ref, q Query) (*Page, error) {
	return read[Page](ctx, c, r, q.parameters(), nil, "standings")
}

// All are the rows of a window from where the query begins on, page after page, each of Query.Limit
// rows; 0 is 1,000. Members who don't move meanwhile are neither repeated nor left out, and all rows
// are of one window, also once another one is the current one. An error ends them: what was read
// before it is right as of its own moment. Rows from the bottom are one page.
func (c *Client) All(ctx context.Context, r Ref, q Query) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		c, q := c, q
		if q.Limit == 0 {
			q.Limit = 1000
		}
		for {
			page, err := c.Standings(ctx, r, q)
			if err != nil {
				yield(Standing{}, err)
				return
			}
			for i := range page.Standings {
				if !yield(page.Standings[i], nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.After, q.Offset = page.Next, 0
			c = c.WaitingFor(0)
		}
	}
}

// AroundQuery is how much around a member is wanted.
type AroundQuery struct {
	N int // rows above and below, 1 to 500; 0 is 5
	// Absent is what is shown for a member who isn't there: top or bottom, an end of the board; empty:
	// a Problem, not-found.
	Absent string
	Ranks  Ranks
}

// Around is a member with the rows above and below.
func (c *Client) Around(ctx context.Context, r Ref, member string, q AroundQuery) (*Around, error) {
	p := parameters{map[string][]string{"member": {member}}}
	p.number("n", int64(q.N))
	p.text("absent", q.Absent)
	p.text("ranks", string(q.Ranks))
	return read[Around](ctx, c, r, p, nil, "around")
}

// Member is a member's standing; a Rank of 0 where there is none.
func (c *Client) Member(ctx context.Context, r Ref, member string, ranks Ranks) (*Member, error) {
	p := parameters{map[string][]string{}}
	p.text("ranks", string(ranks))
	return read[Member](ctx, c, r, p, nil, "members", member)
}

// Shadow is Member for a member who may be banned: it is what they are shown of themselves, with the
// rank that they would have.
func (c *Client) Shadow(ctx context.Context, r Ref, member string) (*Member, error) {
	return read[Member](ctx, c, r, parameters{map[string][]string{"shadow": {"true"}}}, nil, "members", member)
}

// Lookup are 1 to 1,000 members, ranked among themselves and in the board.
func (c *Client) Lookup(ctx context.Context, r Ref, ranks Ranks, members ...string) (*Found, error) {
	p := parameters{map[string][]string{}}
	p.text("ranks", string(ranks))
	return read[Found](ctx, c, r, p, map[string][]string{"members": members}, "members", "lookup")
}

// Rank is the rank that points would have, with n rows around it, 0 to 500.
func (c *Client) Rank(ctx context.Context, r Ref, points int64, n int) (*Rank, error) {
	p := parameters{map[string][]string{"points": {strconv.FormatInt(points, 10)}}}
	p.number("n", int64(n))
	return read[Rank](ctx, c, r, p, nil, "rank")
}

// RankOfFields is Rank on a board that has fields: it takes all of them.
func (c *Client) RankOfFields(ctx context.Context, r Ref, fields map[string]int64, n int) (*Rank, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, name+":"+strconv.FormatInt(fields[name], 10))
	}
	p := parameters{map[string][]string{"fields": {strings.Join(all, ",")}}}
	p.number("n", int64(n))
	return read[Rank](ctx, c, r, p, nil, "rank")
}

// Best is what it takes to be among the best so many percent, above 0 and 100 at most.
func (c *Client) Best(ctx context.Context, r Ref, percent float64) (*Percent, error) {
	p := parameters{map[string][]string{"percent": {strconv.FormatFloat(percent, 'f', -1, 64)}}}
	return read[Percent](ctx, c, r, p, nil, "rank")
}

// BoardsQuery is on which boards a member is looked for.
type BoardsQuery struct {
	Boards  []string // empty: all that are configured, if not any board may be named
	Periods []string // empty: all
	Window  string   // Current or Previous; empty is Current
	Ranks   Ranks
}

// MemberOfBoards is a member on several boards and in several periods, up to 50 windows.
func (c *Client) MemberOfBoards(ctx context.Context, member string, q BoardsQuery) (*MemberOfBoards, error) {
	path, err := pathOf("members", member)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(q.Boards, q.Periods) {
		if name == "" || strings.Contains(name, ",") {
			return nil, errors.New("client: the name of a board or period is empty, or has a comma")
		}
	}
	p := parameters{map[string][]string{}}
	p.text("boards", strings.Join(q.Boards, ","))
	p.text("periods", strings.Join(q.Periods, ","))
	p.text("window", q.Window)
	p.text("ranks", string(q.Ranks))
	return get[MemberOfBoards](ctx, c, &request{path: path, query: p.Values})
}
