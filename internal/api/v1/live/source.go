package live

// A source: what is read, and the versions of it.

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

const (
	// kept is how many versions are kept: three seconds of a board that changes all the time.
	kept = 32
	// besideEvery is how often what is beside the rows makes a version by itself.
	besideEvery = time.Second
	// failedFor is the pause after a read that failed.
	failedFor = time.Second
)

// source is something that is watched.
type source struct {
	hub    *Hub
	key    any
	client string // who began it
	read   Read
	end    context.CancelFunc
	sooner chan struct{}         // somebody has come who wants it read more often
	paces  map[time.Duration]int // guarded by hub.mu: how many clients want which pause

	epoch string // is another one of every source

	mu   sync.Mutex // guards what follows
	news chan struct{}
	// versions are those that are kept, without a gap; none before the first read and while there
	// is a problem.
	versions []*version
	last     int64 // number of the latest version
	of       string
	// snapshot and change are those of the last read, whose rows are the latest version's: so what
	// is sent is as of now, also long after the rows have changed.
	snapshot, change []byte
	problem          []byte // why it can't be read; nil if it can
	problems         int64  // how many there were
}

// version is what was shown for a while.
type version struct {
	number int64
	began  time.Time
	beside string
	rows   []Row

	// What clients take of the latest version, each encoded when the first of them comes: all of
	// its rows, and the differences from earlier versions by their numbers.
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

// shows takes in what was read.
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
		latest.all, latest.changes = nil, nil // nobody takes that any more
		if n == kept {
			s.versions = slices.Delete(s.versions, 0, 1)
		}
	}
	s.last++
	s.versions = append(s.versions, &version{number: s.last, began: now, beside: state.Beside, rows: state.Rows, changes: map[int64][]byte{}})
	s.tell()
}

func same(a, b Row) bool { return a.Member == b.Member && bytes.Equal(a.Text, b.Text) }

// failed takes in why it couldn't be read: what was shown before isn't any more, until it can.
func (s *source) failed(problem []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Equal(problem, s.problem) {
		return
	}
	s.problem, s.versions = problem, nil
	s.problems++
	s.tell()
}

// tell is called with the lock held.
func (s *source) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// version is one that is kept, or nil. It is called with the lock held.
func (s *source) version(number int64) *version {
	if i := number - (s.last - int64(len(s.versions)) + 1); i >= 0 && i < int64(len(s.versions)) {
		return s.versions[i]
	}
	return nil
}

// snapshotRows are all rows, as the end of an object.
func (v *version) snapshotRows() []byte {
	if v.all == nil {
		v.all = append(appendRows([]byte(`,"standings":[`), v.rows), "]}"...)
	}
	return v.all
}

// changedRows are the rows that aren't the same in an earlier version, and who of that isn't there
// any more, as the end of an object.
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
	left := []string{}
	for _, row := range from.rows { // in their order
		if _, ok := before[row.Member]; ok {
			left = append(left, row.Member)
		}
	}
	text, err := json.Marshal(left)
	if err != nil {
		panic(err) // texts are JSON
	}
	text = append(append([]byte(`,"left":`), text...), `,"standings":[`...)
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
