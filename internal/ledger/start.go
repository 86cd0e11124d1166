package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Origin is the offset and the time from which a partition's events are in. A window that starts
// before that time is incomplete.
type Origin struct {
	Offset int64
	Time   int64 // Unix ms; 0 from the beginning
	Log    Log
}

// Log identifies the log that a partition is counted from.
type Log struct {
	Topic string // the topic's id; empty if the brokers report none
	Epoch int32  // of the leader when the counting began; 0 if it is unknown
}

func (o Origin) String() string {
	if o.Log == (Log{}) {
		return fmt.Sprintf("%d %d", o.Offset, o.Time)
	}
	return fmt.Sprintf("%d %d %s@%d", o.Offset, o.Time, o.Log.Topic, o.Log.Epoch)
}

// ParseOrigin reads what String writes.
func ParseOrigin(text string) (Origin, error) {
	words := strings.Split(text, " ")
	var o Origin
	var err error
	switch len(words) {
	case 2:
	case 3:
		topic, epoch, _ := strings.Cut(words[2], "@")
		var n int64
		n, err = strconv.ParseInt(epoch, 10, 32)
		o.Log = Log{topic, int32(n)}
	default:
		err = strconv.ErrSyntax
	}
	for i, into := range []*int64{&o.Offset, &o.Time} {
		if err == nil {
			*into, err = strconv.ParseInt(words[i], 10, 64)
		}
	}
	if err != nil {
		return Origin{}, fmt.Errorf("origin %q: want an offset, a time and perhaps a log", text)
	}
	return o, nil
}

// State is what stands beside the scores, as of one moment.
type State struct {
	Schema  string            // empty where nothing was written yet
	Now     time.Time         // by Redis's clock: as of when all of this is true
	Asked   time.Time         // by this process's clock, before it was read; zero where nobody noted it
	Ledger  map[string]string // "<topic>/<partition>" -> position
	Origins map[string]string
	// Since has, for each period that was added to standings that were there, the time from which on it is
	// counted, in Unix ms, by SinceKey. A window of the period that starts earlier is incomplete.
	Since   map[string]int64
	Windows int
	Workers map[string]string
	// Refills is up to where a partition is read again, as of when Redis was found lost:
	// until its position is there, boards lack events that they had. Those that are
	// through stay in it.
	Refills map[string]int64
	// Rebuilt has those of Refills that a rebuild wrote, which moved the ledger back.
	Rebuilt map[string]bool
	Held    bool
	// Rules has texts of rules by their fingerprints, and by "<topic>/<partition>" the fingerprint
	// of those that the partition is counted by. Nil in what Together makes of several.
	Rules map[string]string
	// Unlike are the shards whose schema isn't this one, of what Together makes of several: a
	// shard without any is one.
	Unlike []int
}

// Clock is Redis's clock by now, or a little ahead of it. What was learned elsewhere since
// the state was read may be later than that moment.
func (s *State) Clock() time.Time {
	if s.Asked.IsZero() {
		return s.Now
	}
	return s.Now.Add(time.Since(s.Asked))
}

// SinceKey is the key of an added period in State.Since: of the list of a board, or of all boards that have
// no list ("").
func SinceKey(board, period string) string {
	if board == "" {
		return period
	}
	return board + ":" + period
}

// Added is a period that is added to standings that were written without it.
type Added struct {
	Board  string // to whose list of periods it is added; empty: all boards that have no list
	Period string
	// Since is the time from which on it is counted, Unix ms: of its windows, those that start
	// earlier are incomplete until a rebuild. 0 if none does.
	Since int64
}

// String names the period, and the board if it has a list of its own.
func (a Added) String() string {
	if a.Board == "" {
		return a.Period
	}
	return a.Period + " of board " + a.Board
}

// Line is a worker's report about itself.
type Line struct {
	Partition Partition
	Text      string // JSON
}

// StartPosition is where one partition is to start.
type StartPosition struct {
	Partition Partition
	Found     string // what the ledger holds now; empty where nothing
	Beside    bool   // other partitions are there: found empty, the ledger was lost meanwhile
	At        Position
	Origin    *Origin // nil leaves the one there is
	// Refill is the offset that was read before, or a later one, where the partition begins
	// because Redis was lost, else 0.
	Refill int64
}

// StartResult is what came of setting where partitions start.
type StartResult int

const (
	// Began: ledger, origins and schema are written.
	Began StartResult = iota
	// Overtaken: another was first; the ledger has to be read again.
	Overtaken
	// HeldUp: a rebuild is about to swap; try again.
	HeldUp
	// Orphaned: windows are listed and the ledger is empty.
	Orphaned
)
