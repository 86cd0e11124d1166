package docs

// The Go of reading.md, as it is there.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"
)

// reading.md begins here.

// Layout is a period's layout, as the schema has it.
type Layout struct {
	Kind string `json:"layout"` // readable or wide
	K    int    `json:"k"`      // bits of ticks
	Tick int64  `json:"tick"`   // ms
	Max  int64  `json:"max"`    // points are within ±max
}

// Decode returns the points in a score, and the time at which they were reached. Times are
// Unix milliseconds; the window is [start, end).
func (l Layout) Decode(score float64, start, end int64) (points, reachedAt int64) {
	var ticks int64
	if l.Kind == "wide" {
		code := int64(math.Float64bits(score)) - 1<<52
		points, ticks = code>>l.K-l.Max, code&(1<<l.K-1)
	} else {
		whole := math.Floor(score) // int64(score) would round -0.9 up to 0
		points, ticks = int64(whole), int64(math.Ldexp(score-whole, l.K))
	}
	return points, max(start, end-(ticks+1)*l.Tick)
}

// Row is a member of a board.
type Row struct {
	Member            string
	Points, ReachedAt int64
}

// Top returns the first n rows of a window, with redis.Nil if Redis has no such window. The
// rows, the layout and the window's bounds are of one moment.
func Top(ctx context.Context, client redis.UniversalClient, prefix, board, period, window string, n int64) ([]Row, error) {
	key := prefix + ":{0}:"
	name := board + ":" + period + ":" + window
	tx := client.TxPipeline()
	schemaText, bounds := tx.Get(ctx, key+"schema"), tx.HGet(ctx, key+"windows", name)
	found := tx.ZRevRangeWithScores(ctx, key+name, 0, n-1)
	if _, err := tx.Exec(ctx); err != nil {
		return nil, err
	}
	var schema struct{ Periods map[string]Layout }
	var start, end, expires int64
	_, err := fmt.Sscan(bounds.Val(), &start, &end, &expires)
	if err = errors.Join(err, json.Unmarshal([]byte(schemaText.Val()), &schema)); err != nil {
		return nil, err
	}
	var rows []Row
	for _, z := range found.Val() {
		points, at := schema.Periods[period].Decode(z.Score, start, end)
		rows = append(rows, Row{z.Member.(string), points, at})
	}
	return rows, nil
}
