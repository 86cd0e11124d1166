package demo

// This file reads what the demo shows, twice a second: the boards and the counts.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/cmd/consumer/status"
	"github.com/standings/standings/cmd/consumer/top"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// mostRows is the maximum number of members that a board shows.
const mostRows = 10

// view is the result of one reading.
type view struct {
	at        time.Time
	boards    []ranking.Board // in display order
	published int64
	applied   int64
	dead      int64
	late      int64
	lag       int64 // events in Kafka that do not count yet; -1 if unknown
	trouble   string
}

// watcher reads the state periodically, and keeps the last few views to compute rates.
type watcher struct {
	reader *top.Reader
	client *kafka.Client
	game   *players
	begun  time.Time
	past   []*view           // oldest first, including the current view
	moves  []boardview.Moves // per board, in display order
}

// The interval between readings, and the number of views from which rates are computed.
const (
	lookEvery = 500 * time.Millisecond
	looks     = 7 // 3 seconds
	// patience is the timeout of a reading.
	patience = 2 * time.Second
)

func newWatcher(ctx context.Context, cfg *config.Config, game *players) (*watcher, error) {
	own := *cfg
	own.Redis.Timeout = min(cfg.Redis.Timeout, patience)
	own.Kafka.Timeout = min(cfg.Kafka.Timeout, patience)
	client, err := app.NewKafka(&own.Kafka, cfg.Kafka.Topics...)
	if err != nil {
		return nil, err
	}
	reader, err := top.Open(ctx, &own)
	if err != nil {
		return nil, err
	}
	return &watcher{reader: reader, client: client, game: game, begun: time.Now(), moves: make([]boardview.Moves, len(shownBoards()))}, nil
}

func (w *watcher) close() {
	w.reader.Close()
	app.CloseKafka(w.client)
}

// look reads Redis and Kafka. It omits what cannot be read, and reports the error in trouble.
func (w *watcher) look(ctx context.Context) view {
	s := w.game.stats
	v := view{
		at: time.Now(), published: w.game.published.Load(), applied: s.Applied.Load(),
		dead: s.DeadLettered(), late: s.Late.Load(), lag: -1, trouble: w.game.trouble(),
	}
	err := w.lookAtBoards(ctx, &v)
	if err == nil {
		err = w.lookAtLag(ctx, &v)
	}
	if err != nil && v.trouble == "" {
		v.trouble = terminal.Plain(err.Error())
	}
	return v
}

// take adds a view. If its boards could not be read, it shows the previous ones.
func (w *watcher) take(v *view) {
	if v.boards == nil && len(w.past) > 0 {
		v.boards = w.last().boards
	}
	for i := range v.boards {
		w.moves[i].Add(v.at, &v.boards[i])
	}
	w.past = append(w.past, v)
	if len(w.past) > looks {
		w.past = w.past[1:]
	}
}

func (w *watcher) lookAtBoards(ctx context.Context, v *view) error {
	var boards []ranking.Board
	for _, of := range shownBoards() {
		b, err := w.reader.Leaders(ctx, of.name, of.period, mostRows)
		if err != nil {
			return err
		}
		boards = append(boards, b)
	}
	v.boards = boards
	return nil
}

type shownBoard struct {
	name   string
	period periods.Period
}

// shownBoards returns the boards to show. A terminal of 80 columns has room for three, so the arena comes
// before the last period.
func shownBoards() (all []shownBoard) {
	for _, p := range config.DefaultPeriods {
		all = append(all, shownBoard{boardNames[0], p})
	}
	return slices.Insert(all, len(all)-1, shownBoard{arena, arenaPeriod})
}

func (w *watcher) lookAtLag(ctx context.Context, v *view) error {
	cfg := w.reader.Config
	topic := cfg.Kafka.Topics[0]
	logs, err := kafkaconn.AllLogs(ctx, w.client, topic, partitions)
	if err != nil {
		return app.ExplainKafka(ctx, err, &cfg.Kafka, topic)
	}
	// Redis is read last: a position beyond the log's end as read before counts as no lag.
	state, err := w.reader.Boards.State(ctx)
	if err != nil {
		return app.ExplainRedis(ctx, err, cfg)
	}
	v.lag = 0
	for p, log := range logs {
		v.lag += log.End // for a partition without a position
		if lag := status.Lag(state.Ledger[ledger.Partition{Topic: topic, Number: p}.String()], log.End); lag != nil {
			v.lag += *lag - log.End
		}
	}
	return nil
}

func (w *watcher) last() *view { return w.past[len(w.past)-1] }

// rate returns the recent growth of a count per second.
func (w *watcher) rate(count func(*view) int64) int64 {
	first, last := w.past[0], w.last()
	took := last.at.Sub(first.at).Seconds()
	if took < 0.1 {
		return 0
	}
	return int64(float64(count(last)-count(first))/took + 0.5)
}

// counts returns the figures in two lines: those of the players and Kafka, and those of the demo's own
// consumer. If other consumers run, this one counts only its share. The figures need not add up at every
// moment: an event counts as lag until its whole batch is in Redis.
func (w *watcher) counts() [2]string {
	v := w.last()
	lag := "?"
	if v.lag >= 0 {
		lag = units.Thousands(v.lag)
	}
	return [2]string{
		fmt.Sprintf("players: published %s (%s/s)   Kafka lag: %s events",
			units.Thousands(v.published), units.Thousands(w.rate(func(v *view) int64 { return v.published })), lag),
		fmt.Sprintf("this consumer: applied %s (%s/s)   dead-lettered %s   late %s",
			units.Thousands(v.applied), units.Thousands(w.rate(func(v *view) int64 { return v.applied })),
			units.Thousands(v.dead), units.Thousands(v.late)),
	}
}
