package ranking

// Calls to several shards at once. The shards share a client, and each server is called in one round trip.

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// ReadEach reads a window on several shards, each by its own query. The parts and errors are like those of
// Read.
func ReadEach(ctx context.Context, shards []*Store, queries []Query) ([]Part, []error) {
	parts, errs := make([]Part, len(shards)), make([]error, len(shards))
	var all []int
	for i := range shards {
		all = append(all, i)
	}
	for range 2 { // a second time for shards with another schema that fits
		var calls []ScriptCall
		var called []int
		for _, i := range all {
			call, err := shards[i].readCall(*shards[i].readAs.Load(), &queries[i])
			if errs[i] = err; err == nil {
				calls, called = append(calls, call), append(called, i)
			}
		}
		replies, failed := CallEach(ctx, calls)
		all = all[:0]
		for j, i := range called {
			schema, _ := calls[j].Args[0].(string)
			if parts[i], errs[i] = shards[i].part(schema, &queries[i], replies[j], failed[j]); shards[i].fits(errs[i]) {
				all = append(all, i)
			}
		}
		if len(all) == 0 {
			break
		}
	}
	return parts, errs
}

// StateEach reads the state of several shards, each as of its own moment.
func StateEach(ctx context.Context, shards []*Store) ([]ledger.State, []error) {
	var calls []ScriptCall
	for _, s := range shards {
		calls = append(calls, ScriptCall{s, lua.State, s.stateKeys(), stateKinds})
	}
	asked := time.Now()
	states := make([]ledger.State, len(shards))
	replies, errs := CallEach(ctx, calls)
	for i, s := range shards {
		states[i], errs[i] = s.state(asked, replies[i], errs[i])
	}
	return states, errs
}

// PositionEach reads a partition's position on several shards.
func PositionEach(ctx context.Context, shards []*Store, partition ledger.Partition) ([]string, []error) {
	texts, errs := make([]string, len(shards)), make([]error, len(shards))
	pipe := shards[0].client.Pipeline()
	replies := make([]*redis.StringCmd, len(shards))
	for i, s := range shards {
		replies[i] = pipe.HGet(ctx, s.keys.Ledger(), partition.String())
	}
	redisconn.Exec(redisconn.Within(ctx, shards[0].timeout), pipe)
	for i, s := range shards {
		texts[i], errs[i] = s.position(partition, replies[i])
	}
	return texts, errs
}

// AboveQuery is a query about pivots on one shard.
type AboveQuery struct {
	Pivots []Pivot
	// Over and From are the numbers of rows to read above the first pivot, and below it.
	Over, From int
	// Bounds, if ties are to be counted, has the range of scores with the same points as each pivot.
	Bounds []Bounds
}

// Bounds is the range [Low, High) of the scores of some points, or of a tuple.
type Bounds struct{ Low, High float64 }

// same reports whether two queries are equal.
func (q *AboveQuery) same(o *AboveQuery) bool {
	return len(q.Pivots) == len(o.Pivots) && &q.Pivots[0] == &o.Pivots[0] && len(q.Bounds) == len(o.Bounds) && q.Over == o.Over && q.From == o.From
}

// arguments returns the arguments of above.lua.
func (q *AboveQuery) arguments() []any {
	args := append(make([]any, 0, 3+4*len(q.Pivots)), q.Over, q.From, option(q.Bounds != nil))
	for i, p := range q.Pivots {
		args = append(args, scoreText(p.Score), p.Member)
		if q.Bounds != nil {
			args = append(args, scoreText(q.Bounds[i].Low), scoreText(q.Bounds[i].High))
		}
	}
	return args
}

// Above is the answer to an AboveQuery.
type Above struct {
	Counts []int64 // of members above each pivot
	// Ties has for each pivot the number of members with more, then the number with at least as much. It is
	// empty without Bounds.
	Ties []int64
	Part // only the rows; it has nothing about the window
}

// AboveEach counts the members of a window above pivots on several shards. It doesn't call shards without a
// pivot. Consecutive equal queries share one argument list.
func AboveEach(ctx context.Context, shards []*Store, board string, w periods.Window, queries []AboveQuery) ([]Above, error) {
	lw := listed(board, w)
	var calls []ScriptCall
	var called []int
	var args []any
	for i := range queries {
		q := &queries[i]
		if len(q.Pivots) == 0 {
			continue
		}
		if len(called) == 0 || !q.same(&queries[called[len(called)-1]]) {
			args = q.arguments()
		}
		s := shards[i]
		calls, called = append(calls, ScriptCall{s, lua.Above, []string{s.keys.Window(&lw)}, args}), append(called, i)
	}
	answers := make([]Above, len(queries))
	replies, errs := CallEach(ctx, calls)
	for j, i := range called {
		err := errs[j]
		if err == nil {
			layout, _ := shards[i].Layout(board, lw.Period)
			answers[i].Fields = shards[i].Fields(board)
			err = shards[i].OfShard(answers[i].read(layout, w, replies[j], &queries[i]))
		}
		if err != nil {
			return nil, fmt.Errorf("count in %s: %w", lw.Listing(), err)
		}
	}
	return answers, nil
}

func (a *Above) read(l codec.TupleLayout, w periods.Window, reply []any, q *AboveQuery) (err error) {
	a.Window = w
	if len(reply) != 3 {
		return Unexpected(lua.Above, reply)
	}
	if a.Counts, err = integers(reply[0], len(q.Pivots)); err != nil {
		return err
	}
	if q.Bounds != nil {
		if a.Ties, err = integers(reply[2], 2*len(q.Pivots)); err != nil {
			return err
		}
	}
	rows, err := list(reply[1])
	if err != nil {
		return err
	}
	first := max(0, a.Counts[0]-int64(q.Over))
	for i := 0; i+1 < len(rows); i += 2 {
		if err := a.add(l, rows[i], rows[i+1], first+int64(i/2)+1); err != nil {
			return err
		}
	}
	a.Rows = len(a.Standings)
	return nil
}

// RowsEach reads the rows at some ranks, from 0, of a window on several shards, as pivots. A pivot has no
// member if the rank doesn't exist. RowsEach doesn't call shards without a rank.
func RowsEach(ctx context.Context, shards []*Store, board string, w periods.Window, ranks [][]int64) ([][]Pivot, error) {
	lw := listed(board, w)
	var calls []ScriptCall
	var called []int
	for i, some := range ranks {
		if len(some) == 0 {
			continue
		}
		s, args := shards[i], []any{"", "ranks"}
		keys := []string{s.keys.Window(&lw)}
		for _, rank := range some {
			keys, args = append(keys, keys[0]), append(args, rank, rank)
		}
		calls, called = append(calls, ScriptCall{s, lua.Page, keys, args}), append(called, i)
	}
	rows := make([][]Pivot, len(ranks))
	replies, errs := CallEach(ctx, calls)
	for j, i := range called {
		err := errs[j]
		if err == nil {
			rows[i], err = pivots(replies[j], len(ranks[i]))
			err = shards[i].OfShard(err)
		}
		if err != nil {
			return nil, fmt.Errorf("read rows of %s: %w", lw.Listing(), err)
		}
	}
	return rows, nil
}

func pivots(reply []any, want int) ([]Pivot, error) {
	if len(reply) != want+1 {
		return nil, Unexpected(lua.Page, reply)
	}
	all := make([]Pivot, want)
	for i := range all {
		row, err := list(reply[i+1])
		if err != nil || len(row) != 0 && len(row) != 2 {
			return nil, Unexpected(lua.Page, reply)
		}
		if len(row) == 0 {
			continue
		}
		all[i].Member = row[0]
		if all[i].Score, err = strconv.ParseFloat(row[1], 64); err != nil {
			return nil, fmt.Errorf("score of %q: %w", row[0], err)
		}
	}
	return all, nil
}
