package live

// What one client takes of a source.

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of events.
const (
	Snapshot = "snapshot" // all rows
	Change   = "change"   // the difference from what the client has
	Problem  = "problem"  // why nothing can be read; a snapshot follows once it can
)

// Events are the names of all.
var Events = []string{Snapshot, Change, Problem}

// Event is what a client is sent.
type Event struct {
	Name string
	ID   string // of the version, which Watch.Resume takes; empty for a problem
	// Head and Rest are the data, one after the other: an object of JSON, in one line. They are
	// shared, and aren't changed.
	Head, Rest []byte
}

// Watch is a client's. It is for one goroutine; Leave is for any.
type Watch struct {
	source  *source
	every   time.Duration
	has     int64 // the version that the client has; 0 for none
	problem int64 // the last problem that it was sent
	left    sync.Once
}

// Leave ends it.
func (w *Watch) Leave() { w.left.Do(func() { w.source.hub.leave(w.source, w.every) }) }

// Resume goes on from the event of an ID, if that is one of this source. It is called before Take.
func (w *Watch) Resume(id string) {
	epoch, number, _ := strings.Cut(id, "-")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && epoch == w.source.epoch {
		w.has = n
	}
}

// Take is what the client is to be sent now, after which it has the latest there is; nil for
// nothing. News is closed once that has changed.
func (w *Watch) Take() (event *Event, news <-chan struct{}) {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem != nil {
		if w.problem == s.problems {
			return nil, s.news
		}
		w.has, w.problem = 0, s.problems
		return &Event{Name: Problem, Head: s.problem}, s.news
	}
	if len(s.versions) == 0 || w.has == s.last {
		return nil, s.news
	}
	from, latest := s.version(w.has), s.versions[len(s.versions)-1]
	w.has = latest.number
	event = &Event{Name: Snapshot, ID: s.epoch + "-" + strconv.FormatInt(latest.number, 10)}
	if from != nil {
		event.Name, event.Head, event.Rest = Change, s.change, latest.changedRows(from)
		return event, s.news
	}
	event.Head, event.Rest = s.snapshot, latest.snapshotRows()
	return event, s.news
}
