package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Origin is the offset and the time from which a partition's events are counted. A window that starts
// before that time is incomplete.
type Origin struct {
	Offset int64
	Time   int64 // Unix ms; 0 from the beginning
	Log    Log
}

// Log identifies the log that a partition is counted from.
type Log struct {
	Topic string // the topic's id; empty if the brokers report none
	Epoch int32  // of the leader when counting started; 0 if unknown
}

func (o Origin) String() string {
	if o.Log == (Log{}) {
		return fmt.Sprintf("%d %d", o.Offset, o.Time)
	}
	return fmt.Sprintf("%d %d %s@%d", o.Offset, o.Time, o.Log.Topic, o.Log.Epoch)
}

// ParseOrigin parses what String writes.
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

// State is a shard's schema, ledger, and other data that isn't scores, as of one moment.
type State struct {
	Schema  string            // empty if nothing was written yet
	Now     time.Time         // the moment, by Redis's clock
	Asked   time.Time         // by this process's clock, before the read; zero if unknown
	Ledger  map[string]string // "<topic>/<partition>" -> position
	Origins map[string]string
	// Since has, for each period that was added to existing standings, the time from which it is counted,
	// in Unix ms, by SinceKey. A window of the period that starts earlier is incomplete.
	Since   map[string]int64
	Windows int
	Workers map[string]string
	// Refills has, for each partition that is read again because Redis was lost, the offset up to which
	// that happens. Until its position is there, boards lack events that they had. An entry stays after the
	// refill.
	Refills map[string]int64
	// Rebuilt marks the entries of Refills that a rebuild wrote, which moved the ledger back.
	Rebuilt map[string]bool
	Held    bool
	// Rules maps fingerprints to texts of rules, and "<topic>/<partition>" to the fingerprint of the rules
	// that the partition is counted by. Together leaves it nil for several shards.
	Rules map[string]string
	// Unlike, set by Together for several shards, lists the shards whose schema isn't Schema, also those
	// without a schema.
	Unlike []int
}

// Clock returns the current time of Redis's clock, or slightly later. Data that was read elsewhere after
// the state may be newer than Now.
func (s *State) Clock() time.Time {
	if s.Asked.IsZero() {
		return s.Now
	}
	return s.Now.Add(time.Since(s.Asked))
}

// SinceKey returns the key of an added period in State.Since. The board is one that lists its periods, or
// "" for all boards that have no list.
func SinceKey(board, period string) string {
	if board == "" {
		return period
	}
	return board + ":" + period
}

// Added is a period that is added to standings that were written without it.
type Added struct {
	Board  string // the board whose list it is added to; empty for all boards without a list
	Period string
	// Since is the time from which the period is counted, in Unix ms: its windows that start earlier are
	// incomplete until a rebuild. It is 0 if there are no such windows.
	Since int64
}

// String returns the period, and the board if it has a list of its own.
func (a Added) String() string {
	if a.Board == "" {
		return a.Period
	}
	return a.Period + " of board " + a.Board
}

// Line is a worker's status line.
type Line struct {
	Partition Partition
	Text      string // JSON
}

// StartPosition is where a partition is to start.
type StartPosition struct {
	Partition Partition
	Found     string // the ledger's current value; empty if it has none
	Beside    bool   // if Found is empty, the ledger must have other partitions: otherwise it was lost meanwhile
	At        Position
	Origin    *Origin // nil keeps the old one
	// Refill is an offset up to which, at least, the partition was read before Redis was lost; 0 if Redis
	// wasn't lost.
	Refill int64
}

// StartResult is the result of setting where partitions start.
type StartResult int

const (
	// Began means that ledger, origins and schema are written.
	Began StartResult = iota
	// Overtaken means that another worker was first: read the ledger again.
	Overtaken
	// HeldUp means that a rebuild is about to swap: try again.
	HeldUp
	// Orphaned means that windows are listed and the ledger is empty.
	Orphaned
)
