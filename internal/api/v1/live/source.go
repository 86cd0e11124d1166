package live

// A source: the reads and the versions of one watched state.

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

const (
	// kept is the number of versions that a source keeps: three seconds of a board that changes all the time.
	kept = 32
	// besideEvery is the minimum time before a change outside the rows alone begins a version.
	besideEvery = time.Second
	// failedFor is the pause after a failed read.
	failedFor = time.Second
)

// source is a state that clients watch.
type source struct {
	hub    *Hub
	key    any
	client string // the client that started it
	read   Read
	end    context.CancelFunc
	sooner chan struct{}         // a client has come that wants shorter pauses
	paces  map[time.Duration]int // guarded by hub.mu: the number of clients per requested pause

	epoch string // random, to distinguish the sources

	mu   sync.Mutex // guards the fields below
	news chan struct{}
	// versions are the versions kept, with consecutive numbers. It is empty before the first read, and after a
	// problem it has only versions read since.
	versions []*version
	last     int64 // number of the latest version
	of       string
	// snapshot and change are from the last read, and the rows are the latest version's. So an event shows the
	// values outside the rows as of the last read, even if the rows changed long before.
	snapshot, change []byte
	problem          []byte // why the state cannot be read; nil if it can
	problems         int64  // the number of problems so far
}

// version is a state that was shown for a while.
type version struct {
	number int64
	began  time.Time
	beside string
	rows   []Row

	// The encoded forms of the latest version, each created for the first client that takes it: all of its rows,
	// and the differences from earlier versions by their numbers.
	all     []byte
	changes map[int64][]byte
}

// run reads until the context ends.
func (s *source) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		state, err := s.read(ctx)
		if ctx.Err() != nil {
			return
		}
		s.hub.Counted()
		pause := failedFor
		if err != nil {
			s.failed(s.hub.Problem(err))
		} else {
			s.shows(&state)
			pause = s.hub.pause(s)
		}
		read := time.Now()
		for waiting := true; waiting; {
			timer.Reset(time.Until(read.Add(pause)))
			select {
			case <-timer.C:
				waiting = false
			case <-s.sooner:
				if err == nil {
					pause = s.hub.pause(s)
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// shows processes a successful read.
func (s *source) shows(state *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem != nil || state.Of != s.of {
		s.problem, s.versions, s.of = nil, nil, state.Of
	}
	s.snapshot, s.change = state.Snapshot, state.Change
	now := time.Now()
	if n := len(s.versions); n > 0 {
		latest := s.versions[n-1]
		if slices.EqualFunc(latest.rows, state.Rows, same) && (latest.beside == state.Beside || now.Sub(latest.began) < besideEvery) {
			return
		}
		latest.all, latest.changes = nil, nil // clients take only the latest version
		if n == kept {
			s.versions = slices.Delete(s.versions, 0, 1)
		}
	}
	s.last++
	s.versions = append(s.versions, &version{number: s.last, began: now, beside: state.Beside, rows: state.Rows, changes: map[int64][]byte{}})
	s.tell()
}

func same(a, b Row) bool { return a.Member == b.Member && bytes.Equal(a.Text, b.Text) }

// failed processes a failed read: the earlier state is not shown again until a read succeeds.
func (s *source) failed(problem []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Equal(problem, s.problem) {
		return
	}
	s.problem = problem
	s.problems++
	s.tell()
}

// tell wakes the clients. The caller holds mu.
func (s *source) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// version returns a kept version by its number, or nil. The caller holds mu.
func (s *source) version(number int64) *version {
	if i := number - (s.last - int64(len(s.versions)) + 1); i >= 0 && i < int64(len(s.versions)) {
		return s.versions[i]
	}
	return nil
}

// snapshotRows returns all rows, as the end of a JSON object.
func (v *version) snapshotRows() []byte {
	if v.all == nil {
		v.all = append(appendRows([]byte(`,"standings":[`), v.rows), "]}"...)
	}
	return v.all
}

// changedRows returns the rows that differ from an earlier version, and the members that are no longer shown, as the
// end of a JSON object.
func (v *version) changedRows(from *version) []byte {
	if text := v.changes[from.number]; text != nil {
		return text
	}
	before := make(map[string][]byte, len(from.rows))
	for _, row := range from.rows {
		before[row.Member] = row.Text
	}
	var changed []Row
	for _, row := range v.rows {
		if text, ok := before[row.Member]; !ok || !bytes.Equal(text, row.Text) {
			changed = append(changed, row)
		}
		delete(before, row.Member)
	}
	removed := []string{}
	for _, row := range from.rows { // in the rows' order
		if _, ok := before[row.Member]; ok {
			removed = append(removed, row.Member)
		}
	}
	text, err := json.Marshal(removed)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	text = append(append([]byte(`,"removed":`), text...), `,"standings":[`...)
	text = append(appendRows(text, changed), "]}"...)
	v.changes[from.number] = text
	return text
}

func appendRows(to []byte, rows []Row) []byte {
	for i, row := range rows {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(to, row.Text...)
	}
	return to
}
