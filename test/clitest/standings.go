package clitest

// Standings in Redis that commands read.

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// Window is the week that Add counts in.
const Window = "2100-W10"

// LineOf returns a worker's report as Redis stores it.
func LineOf(l workers.Line) string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Standings is a unique prefix, with the environment that leads to it.
type Standings struct {
	Store   *ranking.Store   // shard 0
	Shards  []*ranking.Store // all shards
	Reader  *app.Reader
	Environ []string
	At      map[int]ledger.Position
}

// StandingsOf creates a prefix in which a consumer has started, with the origin times of its partitions in ms.
func StandingsOf(t *testing.T, origins ...int64) *Standings {
	t.Helper()
	return StandingsIn(t, 1, origins...)
}

// StandingsIn is StandingsOf with a number of shards.
func StandingsIn(t *testing.T, shards int, origins ...int64) *Standings {
	t.Helper()
	return StandingsAt(t, testenv.Redis(t).Addr(), testenv.Prefix(t), shards, origins...)
}

// StandingsAt is StandingsIn with an address of Redis and a prefix.
func StandingsAt(t *testing.T, address, prefix string, shards int, origins ...int64) *Standings {
	t.Helper()
	w := &Standings{At: map[int]ledger.Position{}, Environ: []string{
		"STANDINGS_REDIS_ADDRESSES=" + address, "STANDINGS_REDIS_PREFIX=" + prefix, "STANDINGS_REDIS_SHARDS=" + strconv.Itoa(shards),
	}}
	l, err := config.Load("", w.Environ)
	if err != nil {
		t.Fatal(err)
	}
	if w.Reader, err = app.OpenReader(t.Context(), l.Config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Reader.Close)
	// Like the consumer, which knows the cluster's id.
	known, err := app.NewBoards(l.Config, w.Reader.Client, "some-cluster")
	if err != nil {
		t.Fatal(err)
	}
	w.Shards = known.Shards()
	w.Store = w.Shards[0]
	var all []ledger.StartPosition
	for p, origin := range origins {
		w.At[p] = ledger.At(0)
		all = append(all, ledger.StartPosition{Partition: ledger.Partition{Topic: "points", Number: p}, At: ledger.At(0), Origin: &ledger.Origin{Time: origin}})
	}
	for _, s := range w.Shards {
		if begun, err := s.Begin(t.Context(), all); err != nil || begun != ledger.Began {
			t.Fatalf("%v %v", begun, err)
		}
	}
	for p := range origins {
		w.Reports(t, p, workers.Line{Owner: "me:1", State: workers.StateRunning, Lag: new(int64)})
	}
	return w
}

// Reports writes a worker's report. A report without a time stays current for the whole test.
func (w *Standings) Reports(t *testing.T, partition int, l workers.Line) {
	t.Helper()
	if l.At.IsZero() {
		now, err := w.Store.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.At = now.Add(time.Hour).UTC()
	}
	w.Finds(t, ledger.Partition{Topic: "points", Number: partition}.String(), l)
}

// Finds stores a worker's report unchanged.
func (w *Standings) Finds(t *testing.T, field string, l workers.Line) {
	t.Helper()
	if err := w.Reader.Client.HSet(t.Context(), w.Store.Keys().Workers(), field, LineOf(l)).Err(); err != nil {
		t.Fatal(err)
	}
}

// Add counts points of members in one window. The windows are in 2100, so they do not expire.
func (w *Standings) Add(t *testing.T, board string, members ...ledger.Member) {
	t.Helper()
	w.AddTo(t, Window, board, members...)
}

// AddTo counts points of members in another week.
func (w *Standings) AddTo(t *testing.T, week, board string, members ...ledger.Member) {
	t.Helper()
	window, err := new(periods.BuiltIn(periods.Weekly, w.Reader.Calendar)).Named(week)
	if err != nil {
		t.Fatal(err)
	}
	of := ledger.Shards(len(w.Shards))
	homes := make([][]ledger.Member, of)
	for _, m := range members {
		home := of.Of(xxhash.Sum64(m.ID))
		homes[home] = append(homes[home], m)
	}
	next := ledger.At(w.At[0].From + 1)
	for i, s := range w.Shards {
		piece := &ledger.Piece{Partition: ledger.Partition{Topic: "points"}, Expected: w.At[0], Next: next}
		if len(homes[i]) > 0 {
			piece.Windows = []ledger.Window{{Board: board, Period: string(periods.Weekly), Name: week, Start: window.Start, End: window.End}}
			piece.Groups = []ledger.Group{{Windows: []int{0}, Members: homes[i]}}
		}
		answer, _, err := s.Apply(t.Context(), piece)
		if err != nil || answer.Outcome != ledger.Applied {
			t.Fatalf("%+v %v", answer, err)
		}
	}
	w.At[0] = next
}

// Member returns a change of a member's points, reached at an RFC 3339 time, or at no time if at is "".
func Member(id string, points int64, at string) ledger.Member {
	m := ledger.Member{ID: []byte(id), Points: points, Time: ledger.NoTime}
	if at != "" {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			panic(err)
		}
		m.Time = t.UnixMilli()
	}
	return m
}
