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

// below returns a path below the window's path.
func (r Ref) below(parts ...string) (string, error) {
	window := r.Window
	if window == "" {
		window = Current
	}
	return pathOf(append([]string{"boards", r.Board, "periods", r.Period, "windows", window}, parts...)...)
}

// Boards returns all boards that have a window, sorted by name. The list may be up to five seconds old. An error
// ends the sequence.
func (c *Client) Boards(ctx context.Context) iter.Seq2[Board, error] {
	type list struct {
		Boards     []Board `json:"boards"`
		NextCursor string  `json:"next_cursor"`
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
			if l.NextCursor == "" {
				return
			}
			p.Set("cursor", l.NextCursor)
		}
	}
}

// Windows returns a board's windows of a period, latest first. limit is the maximum number of windows, 1 to 1,000;
// 0 means 100.
func (c *Client) Windows(ctx context.Context, board, period string, limit int) (*Windows, error) {
	path, err := pathOf("boards", board, "periods", period, "windows")
	if err != nil {
		return nil, err
	}
	p := parameters{map[string][]string{}}
	p.number("limit", int64(limit))
	return get[Windows](ctx, c, &request{path: path, query: p.Values})
}

// read sends a request about a window. It waits for the client's records.
func read[T any](ctx context.Context, c *Client, r Ref, p parameters, post any, parts ...string) (*T, error) {
	path, err := r.below(parts...)
	if err != nil {
		return nil, err
	}
	p.waiting(c)
	return get[T](ctx, c, &request{path: path, query: p.Values, post: post})
}

// Window returns a window without its rows.
func (c *Client) Window(ctx context.Context, r Ref) (*WindowOnly, error) {
	return read[WindowOnly](ctx, c, r, parameters{map[string][]string{}}, nil)
}

// Query selects rows of a window. The zero Query selects the first ten.
type Query struct {
	Limit  int  // maximum number of rows, 1 to 1,000; 0 means 10
	Offset int  // number of rows to skip
	Bottom bool // select rows from the bottom; they are still in rank order
	// Cursor is the NextCursor of the previous page: the page continues after that page's last row, in the same window.
	Cursor string
	// MinPoints and MaxPoints select a range of points, inclusive; nil means no limit.
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
	p.text("cursor", q.Cursor)
	for name, points := range map[string]*int64{"min_points": q.MinPoints, "max_points": q.MaxPoints} {
		if points != nil {
			p.Set(name, strconv.FormatInt(*points, 10))
		}
	}
	p.text("ranks", string(q.Ranks))
	return p
}

// Standings returns a page of a window's rows.
func (c *Client) Standings(ctx context.Context, r Ref, q Query) (*Page, error) {
	return read[Page](ctx, c, r, q.parameters(), nil, "standings")
}

// All returns the rows of a window, starting with the query's first row. It reads page by page; Query.Limit is the
// page size, and 0 means 1,000. Members that do not move meanwhile are neither repeated nor skipped. All rows are
// of one window, even if another window becomes the current one. Each page is as of its own read. An error ends
// the sequence. With Query.Bottom only one page is read.
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
			if page.NextCursor == "" {
				return
			}
			q.Cursor, q.Offset = page.NextCursor, 0
			c = c.WaitingFor(0)
		}
	}
}

// AroundQuery selects the rows around a member.
type AroundQuery struct {
	N int // number of rows above and below, 1 to 500; 0 means 5
	// IfMissing selects the rows for a member without a standing: top or bottom, which is an end of the board. If it
	// is empty, the error is a [*Problem] with the word not-found.
	IfMissing string
	Ranks     Ranks
}

// Around returns a member's row with the rows above and below it.
func (c *Client) Around(ctx context.Context, r Ref, member string, q AroundQuery) (*Around, error) {
	p := parameters{map[string][]string{"member": {member}}}
	p.number("n", int64(q.N))
	p.text("if_missing", q.IfMissing)
	p.text("ranks", string(q.Ranks))
	return read[Around](ctx, c, r, p, nil, "around")
}

// Member returns a member's standing. Its Rank is 0 if the member has none.
func (c *Client) Member(ctx context.Context, r Ref, member string, ranks Ranks) (*Member, error) {
	p := parameters{map[string][]string{}}
	p.text("ranks", string(ranks))
	return read[Member](ctx, c, r, p, nil, "members", member)
}

// Shadow returns a member's standing as the member itself should see it. It differs from Member only for a banned
// member: it shows the rank that the member would have.
func (c *Client) Shadow(ctx context.Context, r Ref, member string) (*Member, error) {
	return read[Member](ctx, c, r, parameters{map[string][]string{"shadow": {"true"}}}, nil, "members", member)
}

// Lookup returns the standings of 1 to 1,000 members, ranked on the board and among each other.
func (c *Client) Lookup(ctx context.Context, r Ref, ranks Ranks, members ...string) (*Found, error) {
	p := parameters{map[string][]string{}}
	p.text("ranks", string(ranks))
	return read[Found](ctx, c, r, p, map[string][]string{"members": members}, "members", "lookup")
}

// Rank returns the rank that a member with the given points would have, with n rows above that rank and n from it
// on. n is 0 to 500. On a board that has fields use [Client.RankOfFields].
func (c *Client) Rank(ctx context.Context, r Ref, points int64, n int) (*Rank, error) {
	p := parameters{map[string][]string{"points": {strconv.FormatInt(points, 10)}}}
	p.number("n", int64(n))
	return read[Rank](ctx, c, r, p, nil, "rank")
}

// RankOfFields is Rank for a board that has fields. fields must have all of the board's fields.
func (c *Client) RankOfFields(ctx context.Context, r Ref, fields map[string]int64, n int) (*Rank, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, name+":"+strconv.FormatInt(fields[name], 10))
	}
	p := parameters{map[string][]string{"fields": {strings.Join(all, ",")}}}
	p.number("n", int64(n))
	return read[Rank](ctx, c, r, p, nil, "rank")
}

// Best returns the last member among the best percent of the members, and so the points needed to be among them.
// percent must be above 0 and at most 100.
func (c *Client) Best(ctx context.Context, r Ref, percent float64) (*Percent, error) {
	p := parameters{map[string][]string{"percent": {strconv.FormatFloat(percent, 'f', -1, 64)}}}
	return read[Percent](ctx, c, r, p, nil, "rank")
}

// BoardsQuery selects the boards and periods in which a member is read.
type BoardsQuery struct {
	Boards  []string // empty: all configured boards; required if the server allows any board
	Periods []string // empty: all periods
	Window  string   // Current or Previous; empty means Current
	Ranks   Ranks
}

// MemberOfBoards returns a member's standings on several boards and in several periods, at most 50 windows.
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
