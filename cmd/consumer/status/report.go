package status

// This file builds the report from the answers of Kafka and Redis. It does no I/O.

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/units"
)

// report is the whole status. Its JSON is an interface: fields are never omitted or renamed, except that
// shards is absent if there is only one. An unknown value is null.
type report struct {
	At         string             `json:"at"` // RFC 3339 with ms, in UTC, like all times here
	Group      string             `json:"group"`
	Prefix     string             `json:"prefix"`
	Problems   []string           `json:"problems"` // unreachable, unreadable or full servers
	Partitions []partition        `json:"partitions"`
	Incomplete []incompleteWindow `json:"incomplete_windows"`
	Held       bool               `json:"held"` // a rebuild holds the boards
	// Schema is how the configuration differs from the schema of the scores in Redis.
	Schema *string `json:"schema_difference"`
	// Shards is present only if there are several.
	Shards []shards.Report `json:"shards,omitempty"`
}

type partition struct {
	Topic      string  `json:"topic"`
	Partition  int     `json:"partition"`
	LogStart   *int64  `json:"log_start"`
	LogEnd     *int64  `json:"log_end"`  // including records behind an open transaction
	Position   *string `json:"position"` // the ledger's text
	Committed  *int64  `json:"committed"`
	Lag        *int64  `json:"lag"`       // in records
	BehindMS   *int64  `json:"behind_ms"` // age of the first uncounted record; 0 without lag
	State      *string `json:"state"`     // running, waiting or halted, as of reported_at
	Owner      *string `json:"owner"`
	Reason     *string `json:"reason"` // why the partition is halted or waiting
	What       *string `json:"what"`
	Remedy     *string `json:"remedy"`
	ReportedAt *string `json:"reported_at"`
	Stale      bool    `json:"stale"`
	Group      *string `json:"group"` // the worker's group
	// RefillTo is the offset up to which the log is read again after Redis was lost; null once it is
	// reached.
	RefillTo *int64 `json:"refill_to"`
	// Duplicates is the number of preceding records in which duplicates of an event are found; DuplicatesMS
	// is the time that they cover. Both are null without event.duplicates.
	Duplicates   *int64 `json:"duplicates"`
	DuplicatesMS *int64 `json:"duplicates_ms"`
	// OpenTransaction describes a transaction that blocks records; null if the worker has found none.
	OpenTransaction *workers.OpenTransaction `json:"open_transaction"`
	// TimeZoneData is the version of the worker's time zone data.
	TimeZoneData *string `json:"time_zone_data"`

	stable int64 // the log's end for read_committed

	staleFor   time.Duration
	refillLeft int64 // in records
}

type incompleteWindow struct {
	Board      *string  `json:"board"` // the board to which the period was added; null: all boards with the period
	Period     string   `json:"period"`
	Window     string   `json:"window"`
	Partitions []string `json:"partitions"`
}

// unreachable returns the error for an incomplete report.
func (s *report) unreachable() error {
	if len(s.Problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(s.Problems, "\n"))
}

// errNotCounting makes the exit code 1. It has no text because the report already shows the reason.
var errNotCounting = errors.New("")

// counting returns an error if a partition is halted or no consumer processes it.
func (s *report) counting() error {
	if slices.ContainsFunc(s.Partitions, func(p partition) bool {
		return p.State == nil || p.Stale || p.state() == workers.StateHalted
	}) {
		return errNotCounting
	}
	return nil
}

// kafkaLog holds Kafka's offsets of a partition.
type kafkaLog struct {
	start, end int64
	committed  *int64
	stable     int64 // the log's end for read_committed: the start of the first open transaction
}

// partitionsOf returns the partitions of the configured topics that Kafka or Redis know.
func partitionsOf(topics []string, logs map[ledger.Partition]kafkaLog, state *ledger.State) []ledger.Partition {
	all := slices.Collect(maps.Keys(logs))
	if state != nil {
		for _, fields := range []map[string]string{state.Ledger, state.Workers} {
			for field := range fields {
				if id, err := ledger.ParsePartition(field); err == nil && slices.Contains(topics, id.Topic) {
					all = append(all, id)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b ledger.Partition) int {
		return cmp.Or(cmp.Compare(slices.Index(topics, a.Topic), slices.Index(topics, b.Topic)), a.Compare(b))
	})
	return slices.Compact(all)
}

// partitionOf combines the facts about a partition. log and state are nil if Kafka or Redis could not be
// reached.
func partitionOf(id ledger.Partition, log *kafkaLog, state *ledger.State) partition {
	r := partition{Topic: id.Topic, Partition: id.Number}
	if log != nil {
		r.LogStart, r.LogEnd, r.Committed, r.stable = &log.start, &log.end, log.committed, log.stable
	}
	if state == nil {
		return r
	}
	field := id.String()
	if text, ok := state.Ledger[field]; ok {
		r.Position = &text
		if log != nil {
			r.Lag = Lag(text, log.end)
		}
	}
	for _, p := range workers.Of(state, nil).Refilling {
		if p.Field == field {
			r.RefillTo, r.refillLeft = &p.To, p.To-p.From
		}
	}
	if text, ok := state.Workers[field]; ok {
		r.addLine(text, state.Now)
	}
	return r
}

// Lag returns the number of uncounted records in a log with this end, for a position from the ledger; nil
// if it is unknown.
func Lag(position string, end int64) *int64 {
	at, ok := counted(position)
	if !ok {
		return nil
	}
	return new(max(0, end-at))
}

// counted returns the offset before which every event counts. A torn position contains the position before
// the torn piece.
func counted(text string) (int64, bool) {
	at, err := ledger.Parse(text)
	if errors.Is(err, ledger.ErrTorn) {
		_, before, _ := strings.Cut(text, ":")
		at, err = ledger.Parse(before)
	}
	return at.From, err == nil
}

// addLine adds the worker's own report. now and the report's time are from Redis's clock.
func (p *partition) addLine(text string, now time.Time) {
	var line workers.Line
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		p.What = new("the worker's report is unreadable: " + err.Error())
		return
	}
	p.State, p.Owner, p.ReportedAt = &line.State, &line.Owner, new(units.TimeMS(line.Time().UnixMilli()))
	for to, from := range map[**string]*string{&p.Group: &line.Group, &p.Reason: &line.Reason, &p.What: &line.What, &p.Remedy: &line.Remedy, &p.TimeZoneData: &line.TimeZoneData} {
		if *from != "" {
			*to = from
		}
	}
	if line.Duplicates > 0 {
		p.Duplicates = &line.Duplicates
		if newest := line.RecordTime; !newest.IsZero() && !line.DuplicatesSince.IsZero() {
			p.DuplicatesMS = new(max(0, newest.Sub(line.DuplicatesSince).Milliseconds()))
		}
	}
	p.OpenTransaction = line.OpenTransaction
	p.staleFor = now.Sub(line.Time())
	p.Stale = p.staleFor > workers.StaleAfter
}

// incompleteWindows returns the live windows that lack events, newest first, period by period: first those
// of all boards, then those of boards to which a period was added. The windows have the bounds that the
// consumers have settled.
func incompleteWindows(cfg *config.Config, state *ledger.State, settled periods.Borders) ([]incompleteWindow, error) {
	all := []incompleteWindow{}
	latest := int64(0)
	for _, text := range state.Origins {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return nil, err
		}
		latest = max(latest, o.Time)
	}
	for _, p := range cfg.Kept() {
		some, err := incompleteOf(cfg, p, "", max(latest, state.Since[string(p.Name)]), state, settled)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for _, key := range slices.Sorted(maps.Keys(state.Since)) {
		board, name, listed := strings.Cut(key, ":")
		for _, p := range cfg.Kept() {
			if !listed || string(p.Name) != name {
				continue
			}
			some, err := incompleteOf(cfg, p, board, state.Since[key], state, settled)
			if err != nil {
				return nil, err
			}
			some = slices.DeleteFunc(some, func(w incompleteWindow) bool { // already listed for all boards
				return slices.ContainsFunc(all, func(of incompleteWindow) bool {
					return of.Board == nil && of.Period == w.Period && of.Window == w.Window
				})
			})
			all = append(all, some...)
		}
	}
	return all, nil
}

// incompleteOf returns the live windows of a period that lack events and start before a time (Unix ms). An
// empty board means all boards.
func incompleteOf(cfg *config.Config, p *config.Period, board string, before int64, state *ledger.State, settled periods.Borders) (all []incompleteWindow, err error) {
	rule, err := cfg.Rule(p)
	if err != nil {
		return nil, err
	}
	rule = rule.By(settled)
	now := state.Now.UnixMilli()
	w, ok, err := rule.Latest(now)
	if err != nil {
		return nil, err
	}
	for ; ok && before > 0 && w.End+p.Retention.Milliseconds() > now; w, ok = rule.Previous(w) {
		if w.Start >= before {
			continue
		}
		partly, err := ranking.Incomplete(state, board, string(p.Name), w.Start)
		if err != nil {
			return nil, err
		}
		if len(partly) > 0 {
			slices.SortFunc(partly, ledger.CompareFields)
			one := incompleteWindow{Period: string(p.Name), Window: w.Name, Partitions: partly}
			if board != "" {
				one.Board = &board
			}
			all = append(all, one)
		}
	}
	return all, nil
}
