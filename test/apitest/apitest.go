// Package apitest serves the API over an embedded Redis with fixed standings and a fixed time. The output of clients
// that read boards over HTTP can therefore be compared with a text.
//
// It has two boards in the weeks 2026-W47 and 2026-W48, the latter being current: global, ranked by points, and arena,
// ranked by its own rule, the furthest stage, then the fewest revives.
package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	v1 "github.com/standings/standings/internal/api/v1"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/rules"
)

// Now is the time of its Redis: a Wednesday.
var Now = time.Date(2026, 11, 25, 4, 0, 0, 0, time.UTC)

// Records is the number of counted records of points/0, and so the offset of the next one.
const Records = 48211

// API is a handler that works until Close.
type API struct {
	http.Handler
	close []func()
}

// Close ends the Redis.
func (a *API) Close() {
	for i := len(a.close) - 1; i >= 0; i-- {
		a.close[i]()
	}
}

// row is a member's standing: the points or the fields, and the time from the week's start at which they were
// reached.
type row struct {
	board, week, member string
	after               time.Duration
	values              []int64
}

// The rows of global are few enough to be read at once, and enough for several pages. Equal points are among the first
// two and in the middle.
func standings() []row {
	var all []row
	points := []int64{4210, 4210, 3999, 3120, 2750, 2750, 2750, 1980, 1500, 1210, 990, 640, 300, 75, 0}
	names := []string{"Kalobi", "u42", "Nori", "Anka", "Bo", "Chidi", "Dara", "Emi", "Finn", "Gita", "Hugo", "Ines", "Jun", "Kofi", "Lena"}
	for i, name := range names {
		all = append(all, row{"global", "2026-W48", name, time.Duration(i+1) * time.Hour, []int64{points[i]}})
	}
	return append(all,
		row{"global", "2026-W47", "Nori", 90 * time.Hour, []int64{8123}},
		row{"global", "2026-W47", "u42", 70 * time.Hour, []int64{7001}},
		row{"arena", "2026-W48", "u42", 9 * time.Hour, []int64{42, 3}},
		row{"arena", "2026-W48", "Nori", 5 * time.Hour, []int64{42, 5}},
		row{"arena", "2026-W48", "Bo", 2 * time.Hour, []int64{17, 0}},
	)
}

const (
	maxPoints = 1_000_000
	retention = 60 * 24 * time.Hour
)

// New starts the API. Callers may change the handler's configuration.
func New(ctx context.Context, change ...func(*v1.Config)) (*API, error) {
	a := new(API)
	if err := a.open(ctx, change); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *API) open(ctx context.Context, change []func(*v1.Config)) error {
	server, err := embedded.StartMiniredisAt(ctx, Now)
	if err != nil {
		return err
	}
	a.close = append(a.close, server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	a.close = append(a.close, func() { _ = client.Close() })
	arena, stores, err := shards(client)
	if err != nil {
		return err
	}
	all := boards.New(stores)
	if err := begin(ctx, client, all.Shards()[0]); err != nil {
		return err
	}
	if err := write(ctx, client, all, &arena); err != nil {
		return err
	}
	byDefault, err := rules.Default(maxPoints)
	if err != nil {
		return err
	}
	c := v1.Config{
		Timeout: 20 * time.Second, Requests: 64, Streams: 64, Metrics: v1.NewMetrics(), Log: zap.NewNop(),
		Reader: reading.New(reading.Config{
			Boards: all, Topics: []string{"points"}, Named: []string{"global", "arena"},
			Renumber: func(context.Context, ledger.Shards) (*boards.Boards, error) {
				return nil, errors.New("nobody has changed the number of shards")
			},
			Periods: []reading.Period{{Rule: periods.BuiltIn(periods.Weekly, periods.Calendar{}), Zone: "UTC"}},
			CheckBoard: func(name string) error {
				if name != "global" && name != "arena" {
					return errors.New("isn't one of the boards: global, arena")
				}
				return nil
			},
			Has: func(_ string, p periods.Period) bool { return p == periods.Weekly },
			Rule: func(board string) rules.Rule {
				if board == "arena" {
					return arena
				}
				return byDefault
			},
		}),
	}
	for _, do := range change {
		do(&c)
	}
	handler := v1.New(c)
	a.Handler = handler
	a.close = append(a.close, func() {
		handler.EndStreams()
		handler.Wait()
	})
	return nil
}

// shards returns the configuration of the standings, and arena's rule.
func shards(client *redis.Client) (arena rules.Rule, _ ranking.Config, err error) {
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: 999}, codec.Field{Name: "revives", Max: 99, Fewest: true})
	if err != nil {
		return arena, ranking.Config{}, err
	}
	if arena, err = rules.New(rules.Best, fields); err != nil {
		return arena, ranking.Config{}, err
	}
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), maxPoints)
	if err != nil {
		return arena, ranking.Config{}, err
	}
	ruled, err := codec.NewTupleLayout(codec.Readable, periods.Weekly.Length(), fields)
	if err != nil {
		return arena, ranking.Config{}, err
	}
	return arena, ranking.Config{
		Client: client, Prefix: "lb", Shards: 1, Cluster: "apitest", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: retention}},
		Boards:  map[string]*ranking.Ruled{"arena": {Rule: &arena, Layouts: map[periods.Period]codec.TupleLayout{periods.Weekly: ruled}}},
	}, nil
}

// begin writes the ledger and the report of a consumer that has counted all records.
func begin(ctx context.Context, client *redis.Client, s *ranking.Store) error {
	points := ledger.Partition{Topic: "points"}
	if _, err := s.Begin(ctx, []ledger.StartPosition{{Partition: points, At: ledger.At(Records), Origin: &ledger.Origin{}}}); err != nil {
		return fmt.Errorf("begin the standings: %w", err)
	}
	// The report stays current as long as the API runs.
	line, err := json.Marshal(workers.Line{Owner: "apitest:1", State: workers.StateRunning, At: Now.Add(24 * time.Hour), Lag: new(int64)})
	if err != nil {
		return err
	}
	if err := client.HSet(ctx, s.Keys().Workers(), points.String(), line).Err(); err != nil {
		return fmt.Errorf("report a consumer: %w", err)
	}
	return nil
}

// write writes the standings as the consumer's scripts do.
func write(ctx context.Context, client *redis.Client, all *boards.Boards, arena *rules.Rule) error {
	keys := all.Shards()[0].Keys()
	pipe := client.Pipeline()
	for _, r := range standings() {
		window, err := new(periods.BuiltIn(periods.Weekly, periods.Calendar{})).Named(r.week)
		if err != nil {
			return err
		}
		layout, ok := all.Layout(r.board, periods.Weekly)
		if !ok {
			return fmt.Errorf("%s has no layout", r.board)
		}
		var tuple codec.Tuple
		copy(tuple[:], r.values)
		score, err := layout.Encode(tuple, layout.Ticks(window.Start, window.End, window.Start+r.after.Milliseconds()))
		if err != nil {
			return fmt.Errorf("%s of %s: %w", r.member, r.board, err)
		}
		listing := ranking.Listing{Window: ledger.Window{Start: window.Start, End: window.End}, Expires: window.End + retention.Milliseconds()}
		if r.board == "arena" {
			listing.Rule = arena.Text()
		}
		name := r.board + ":weekly:" + r.week
		pipe.ZAdd(ctx, keys.Listed(name), redis.Z{Score: score, Member: r.member})
		pipe.HSet(ctx, keys.Windows(), name, listing.Text())
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("write the standings: %w", err)
	}
	return nil
}
