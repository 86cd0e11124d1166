package v1

// What streams show: the rows of a window. Package live reads them once for all clients that show the same.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/api/v1/live"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// watched identifies what a stream shows. Streams with equal values share a source.
type watched struct {
	board, period, window string // as in the path: current will become another window

	limit  int    // of the top
	member string // the member whose neighbours are shown; empty for the top
	n      int
	ranks  string
}

// watchedReader reads what a stream shows. It must be used by one goroutine.
type watchedReader struct {
	*api
	of watched

	// The result of the last read. A row that has not changed is not encoded again.
	standings []ranking.Standing
	rows      []live.Row

	// A past window rarely changes, so the archive is not read each time.
	past  live.State
	until time.Time
}

// pastFor is how long a past window's read is reused.
const pastFor = 5 * time.Second

// changeWindow holds the values of a window that change while it is shown.
type changeWindow struct {
	Window      string `json:"window"`
	Members     int64  `json:"members"`
	SecondsLeft int64  `json:"seconds_left"`
}

// read reads the current state. A lost window is an error.
func (r *watchedReader) read(ctx context.Context) (state live.State, err error) {
	defer func() {
		if failure := recover(); failure != nil { // no request's handler recovers in this goroutine
			r.Log.Error("a stream caused a panic", zap.Any("failure", failure), zap.ByteString("stack", debug.Stack()))
			err = problemf(internal, "Internal error. The server's log has the cause")
		}
	}()
	if time.Now().Before(r.until) {
		return r.past, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	t, err := r.Reader.Target(ctx, r.of.board, r.of.period, r.of.window)
	if err != nil {
		return state, err
	}
	v, err := unlessLost(r.view(ctx, t))
	if err != nil {
		return state, err
	}
	if state, err = r.state(&v); err == nil && v.Archived {
		r.past, r.until = state, time.Now().Add(pastFor)
	}
	return state, err
}

func (r *watchedReader) view(ctx context.Context, t reading.Target) (reading.View, error) {
	ties := r.of.ranks != ordinal
	if r.of.member == "" {
		return r.Reader.Rows(ctx, t, reading.Page{Limit: r.of.limit, Ties: ties})
	}
	v, err := r.Reader.Around(ctx, t, r.of.member, r.of.n, ties)
	v.Standings = slices.DeleteFunc(v.Standings, func(st ranking.Standing) bool { return st.Rank == 0 }) // no standing
	return v, err
}

// state returns a view as pieces of JSON.
func (r *watchedReader) state(v *reading.View) (live.State, error) {
	w, current := windowOf(v), statusOf(v, nil)
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	var texts [3]string
	timeless := current
	timeless.Ledger, timeless.Shards = nil, nil // these change with every event of any board
	timeless.ReportedAt = nil                   // this changes every second
	if !v.Archived {
		timeless.AsOf = nil
	}
	lasting := w
	lasting.SecondsLeft = 0
	for i, of := range [][2]any{{w, current}, {changeWindow{w.Window, w.Members, w.SecondsLeft}, current}, {lasting, timeless}} {
		if err := encode(b, of[0]); err != nil {
			return live.State{}, err
		}
		window := string(bytes.TrimSpace(b.Bytes()))
		if err := encode(b, of[1]); err != nil {
			return live.State{}, err
		}
		texts[i] = fmt.Sprintf(`"window":%s,"status":%s`, window, bytes.TrimSpace(b.Bytes()))
	}
	s := live.State{Of: w.Start + " " + w.Window, Beside: texts[2], Change: []byte("{" + texts[1])}
	snapshot := fmt.Sprintf(`{%s,"ranks":"%s"`, texts[0], r.of.ranks)
	if r.of.member != "" {
		if err := encode(b, r.of.member); err != nil {
			return s, err
		}
		snapshot += fmt.Sprintf(`,"member":%s`, bytes.TrimSpace(b.Bytes()))
	}
	s.Snapshot = []byte(snapshot)
	err := r.encodeRows(v, b)
	s.Rows = r.rows
	return s, err
}

// encodeRows encodes the rows that differ from the last read's row in the same place.
func (r *watchedReader) encodeRows(v *reading.View, b *bytes.Buffer) error {
	if slices.Equal(v.Standings, r.standings) {
		return nil
	}
	rows := make([]live.Row, len(v.Standings))
	for i := range v.Standings {
		st := &v.Standings[i]
		if i < len(r.standings) && r.standings[i] == *st {
			rows[i] = r.rows[i]
			continue
		}
		if err := encode(b, row(v, st, r.of.ranks, 0)); err != nil {
			return err
		}
		rows[i] = live.Row{Member: st.Member, Text: bytes.Clone(bytes.TrimSpace(b.Bytes()))}
	}
	r.standings, r.rows = v.Standings, rows
	return nil
}

// streamProblem returns the data of an event that reports why the shown window cannot be read.
func (a *api) streamProblem(err error) []byte {
	p := problemOf(err)
	if p.word != boardLost {
		a.log.Warn("couldn't read what streams show", zap.Error(err))
	}
	var b bytes.Buffer
	_ = encode(&b, p) // cannot fail: it holds only texts and numbers
	return bytes.TrimSpace(b.Bytes())
}

// watch starts to watch what a stream shows.
func (a *api) watch(of *watched, client string, s *stream) error {
	r := &watchedReader{api: a, of: *of}
	var err error
	s.watch, err = a.live.Watch(*of, client, s.interval, r.read)
	switch {
	case errors.Is(err, live.ErrFull):
		return a.Metrics.refused(ofShown, problemf(overloaded, "Too many different boards and members in streams: the limit is %d", a.live.Sources).later())
	case errors.Is(err, live.ErrClient):
		return a.Metrics.refused(ofShown, problemf(tooMany, "Too many different boards and members in streams of this client: the rest of the limit of %d is reserved for others", a.live.Sources).later())
	case err != nil:
		return problemf(unavailable, "The server is shutting down").later()
	}
	return nil
}
