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

// addPartitions adds the partitions of the configured topics that Kafka or Redis know. logs holds Kafka's
// answers; state is nil if Redis could not be reached.
func (s *report) addPartitions(topics []string, logs map[ledger.Partition]partition, state *ledger.State) {
	all := slices.Collect(maps.Keys(logs))
	if state == nil {
		state = &ledger.State{}
	}
	for _, fields := range []map[string]string{state.Ledger, state.Workers} {
		for field := range fields {
			if id, err := ledger.ParsePartition(field); err == nil && slices.Contains(topics, id.Topic) {
				all = append(all, id)
			}
		}
	}
	slices.SortFunc(all, func(a, b ledger.Partition) int {
		return cmp.Or(cmp.Compare(slices.Index(topics, a.Topic), slices.Index(topics, b.Topic)), a.Compare(b))
	})
	for _, id := range slices.Compact(all) {
		p := logs[id]
		p.Topic, p.Partition = id.Topic, id.Number
		p.addState(state)
		s.Partitions = append(s.Partitions, p)
	}
}

// addState adds what Redis holds of the partition.
func (p *partition) addState(state *ledger.State) {
	if text, ok := state.Ledger[p.name()]; ok {
		p.Position = &text
		if p.LogEnd != nil {
			p.Lag = Lag(text, *p.LogEnd)
		}
	}
	for _, r := range workers.Of(state, nil).Refilling {
		if r.Field == p.name() {
			p.RefillTo, p.refillLeft = &r.To, r.To-r.From
		}
	}
	if text, ok := state.Workers[p.name()]; ok {
		p.addLine(text, state.Now)
	}
}

// Lag returns the number of uncounted records in a log with this end, for a position from the ledger; nil
// if it is unknown.
func Lag(position string, end int64) *int64 {
	at, err := ledger.Counted(position)
	if err != nil {
		return nil
	}
	return new(max(0, end-at.From))
}

// addLine adds the worker's own report. now and the report's time are from Redis's clock.
func (p *partition) addLine(text string, now time.Time) {
	var line workers.Line
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		p.What = new("the worker's report is unreadable: " + err.Error())
		return
	}
	p.State, p.Owner, p.ReportedAt = &line.State, &line.Owner, new(units.TimeMS(line.Time().UnixMilli()))
	p.Group, p.Reason, p.What = given(line.Group), given(line.Reason), given(line.What)
	p.Remedy, p.TimeZoneData = given(line.Remedy), given(line.TimeZoneData)
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

// given returns nil for an empty text.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
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
	ofAll := map[incompleteKey]bool{}
	for _, key := range append([]string{""}, slices.Sorted(maps.Keys(state.Since))...) { // "": all boards
		board, name, ofOne := strings.Cut(key, ":")
		for _, p := range cfg.Kept() {
			before := state.Since[key]
			if key == "" {
				before = max(latest, state.Since[string(p.Name)])
			} else if !ofOne || string(p.Name) != name {
				continue
			}
			some, err := incompleteOf(cfg, p, board, before, state, settled)
			if err != nil {
				return nil, err
			}
			for _, w := range some {
				if id := (incompleteKey{w.Period, w.Window}); !ofAll[id] {
					all = append(all, w)
					ofAll[id] = key == ""
				}
			}
		}
	}
	return all, nil
}

type incompleteKey struct{ period, window string }

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
			all = append(all, incompleteWindow{Board: given(board), Period: string(p.Name), Window: w.Name, Partitions: partly})
		}
	}
	return all, nil
}
