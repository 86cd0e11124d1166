package live

// What one client takes from a source.

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of events.
const (
	Snapshot = "snapshot" // all rows
	Change   = "change"   // the difference from the version that the client has
	Problem  = "problem"  // why nothing can be read; a snapshot follows once a read succeeds
)

// Events lists all names.
var Events = []string{Snapshot, Change, Problem}

// Event is an event for a client.
type Event struct {
	Name string
	ID   string // identifies the version, for Watch.Resume; empty for a problem
	// Head and Rest together are the data: a JSON object on one line. Clients share them and must not modify them.
	Head, Rest []byte
}

// Watch is one client's view of a source. It must be used by one goroutine; only Leave may be called by any.
type Watch struct {
	source  *source
	every   time.Duration
	has     int64 // the number of the version that the client has; 0 for none
	problem int64 // the number of the last problem that it took
	left    sync.Once
}

// Leave ends the watch.
func (w *Watch) Leave() { w.left.Do(func() { w.source.hub.leave(w.source, w.every) }) }

// Resume continues after the event with an ID, if this source created it. It must be called before Take.
func (w *Watch) Resume(id string) {
	epoch, number, _ := strings.Cut(id, "-")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && epoch == w.source.epoch {
		w.has = n
	}
}

// Take returns the next event for the client, or nil if the client already has the latest version. News is closed
// once that changes. After a problem no earlier version is kept, so the next event is a snapshot.
func (w *Watch) Take() (event *Event, news <-chan struct{}) {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem != nil {
		if w.problem == s.problems {
			return nil, s.news
		}
		w.problem = s.problems
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
