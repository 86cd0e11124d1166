package reading

// Places of tuples, scores and pivots in a copy. The archive counts all rows; the results count only the rows that
// are shown.

import (
	"fmt"
	"math"
	"slices"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
)

func (c *copied) places(tuples ...codec.Tuple) ([]store.Places, error) {
	all, err := c.store.Places(c.ctx, &c.window, tuples)
	for i := range all {
		all[i] = c.shown(all[i])
	}
	return all, err
}

// shown converts places among all rows to places among the rows that are shown.
func (c *copied) shown(p store.Places) store.Places {
	return store.Places{Better: p.Better - c.unshown.upTo(p.Better), AtLeast: p.AtLeast - c.unshown.upTo(p.AtLeast)}
}

// after sets the place to the number of rows that do not rank strictly after a pivot. The pivot's member may be
// missing.
func (c *copied) after(p *ranking.Pivot) error {
	if math.IsNaN(p.Score) {
		return &askedError{fmt.Errorf("read %s: a score that is not a number", c.board.Name)}
	}
	places, err := c.store.PlaceOfScore(c.ctx, c.window.ID, p.Score)
	if err != nil {
		return err
	}
	if places.AtLeast > places.Better { // all rows with the same score have the same tuple
		rows, err := c.store.Rows(c.ctx, c.window.ID, places.AtLeast, places.AtLeast)
		if err != nil {
			return err
		}
		if len(rows) == 1 && !rows[0].Erased() {
			before := c.standing(&rows[0])
			c.before = &before
		}
	}
	places = c.shown(places)
	above, equal := places.Better, places.AtLeast
	for above < equal { // with equal scores, the greater id ranks first
		middle := (above + equal) / 2
		row, err := c.read(middle, middle+1)
		if err != nil {
			return err
		}
		if p.Member == "" || row[0].Member >= p.Member {
			above = middle + 1
		} else {
			equal = middle
		}
	}
	c.board.Place = above
	return nil
}

// inRange reads a page of the rows whose points are in a range.
func (c *copied) inRange(p Page) error {
	if err := c.sameRule(); err != nil {
		return err
	}
	low, high := c.capped(p.Points[0]), c.capped(p.Points[1])
	if low > high {
		return &askedError{fmt.Errorf("read %s: points from %d to %d: the first must not exceed the second", c.board.Name, low, high)}
	}
	ends, err := c.places(codec.Tuple{low}, codec.Tuple{high})
	if err != nil {
		return err
	}
	from := ends[1].Better
	c.board.InRange = ends[0].AtLeast - from
	if p.After != nil {
		if err := c.after(p.After); err != nil {
			return err
		}
		from = max(from, c.board.Place)
	}
	c.board.Place = from + int64(p.Offset)
	return c.rows(c.board.Place, min(c.board.Place+int64(p.Limit), ends[0].AtLeast), p.Ties)
}

// capped limits points to the range that was possible in the window, as a read from Redis does. If the copy does
// not record the range, all points are possible.
func (c *copied) capped(points int64) int64 {
	most := c.window.MaxPoints
	if c.window.Fields != nil {
		most = c.window.Fields[0].Max
	}
	if most == 0 {
		return points
	}
	return max(-most, min(most, points))
}

// would reads the place of a tuple that is reached after all others.
func (c *copied) would(tuple codec.Tuple, n int) error {
	if err := c.sameRule(); err != nil {
		return err
	}
	if c.board.Fields.Len() > 0 && !c.board.Fields.Holds(tuple) {
		return &askedError{fmt.Errorf("%w: %v", ErrRange, c.board.Fields)}
	}
	if c.board.Fields.Len() == 0 {
		if _, _, err := c.layout.Bounds(tuple); err != nil { // by today's layout, since Redis was read first
			return &askedError{err}
		}
	}
	places, err := c.places(tuple)
	if err != nil {
		return err
	}
	c.board.Counts = []int64{places[0].AtLeast, places[0].Better}
	c.board.Place = places[0].AtLeast
	return c.beside(int64(n), int64(n), true, false)
}

// OtherRuleError reports that a window has other fields than its board has today.
type OtherRuleError struct {
	Board, Window string
	Then, Now     string
}

func (e *OtherRuleError) Error() string {
	return fmt.Sprintf("the board %s counted %s in the window %s, and counts %s today", e.Board, e.Then, e.Window, e.Now)
}

// sameRule returns an error if the copy's fields are not the board's fields of today, by which the request's
// values are given.
func (c *copied) sameRule() error {
	same := slices.EqualFunc(c.board.Fields.List(), c.today.List(), func(a, b codec.Field) bool { return a.Name == b.Name && a.Fewest == b.Fewest })
	if same {
		return nil
	}
	text := func(f codec.Fields) string {
		if f.Len() == 0 {
			return "points"
		}
		return f.String()
	}
	return &askedError{&OtherRuleError{c.board.Name, c.window.Name, text(c.board.Fields), text(c.today)}}
}
