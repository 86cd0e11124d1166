// Package recovery says what would bring the standings back if Redis were lost now. It is pure: what Kafka and
// the place of snapshots hold goes in.
//
//	log        every window that lives is complete from the start of every partition's log
//	snapshot   the log reaches back to the first ledger of a whole snapshot, of every shard and partition,
//	           and the snapshot is of the same schema and rules; it may be of another number of shards
//	nothing    neither: points would be lost
package recovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// By is what would bring the standings back.
type By string

// What it can be.
const (
	Log      By = "log"
	Snapshot By = "snapshot"
	Nothing  By = "nothing"
)

// All are all of them.
var All = []By{Log, Snapshot, Nothing}

// Partition is one of the topics that are read.
type Partition struct {
	ledger.Partition

	Log kafkaconn.Log
	// Whole: every window that lives is complete from the log's start.
	Whole bool
}

// Taken is a whole snapshot.
type Taken struct {
	Name   string
	Began  time.Time
	Schema string              // for as many shards as there are now
	Begin  []map[string]string // of each shard, the first ledger
	Rules  []string            // the fingerprints by which it was counted
}

// Wanted is what a snapshot has to be of.
type Wanted struct {
	Schema string
	Rules  string // the fingerprint
}

// Verdict is what would bring them back.
type Verdict struct {
	By By
	// Of Snapshot:
	Name  string
	Began time.Time
	// WhyNotLog is what the log alone lacks; empty with Log.
	WhyNotLog string
	// WhyNotSnapshot is what the newest snapshot lacks; empty if there is none, and where one suffices.
	WhyNotSnapshot string
}

// Decide looks at the log first, and then at the snapshots, which are the newest first.
func Decide(partitions []Partition, snapshots []Taken, w Wanted) Verdict {
	v := Verdict{By: Log}
	for _, p := range partitions {
		if !p.Whole {
			v.By, v.WhyNotLog = Nothing, fmt.Sprintf("the log of %v begins at offset %d, and what was deleted before may be of windows that still live", p.Partition, p.Log.Start)
			break
		}
	}
	if v.By == Log {
		return v
	}
	for i := range snapshots {
		s := &snapshots[i]
		why := lacks(s, partitions, w)
		if why == "" {
			v.By, v.Name, v.Began, v.WhyNotSnapshot = Snapshot, s.Name, s.Began, ""
			return v
		}
		if v.WhyNotSnapshot == "" {
			v.WhyNotSnapshot = fmt.Sprintf("the snapshot %s doesn't do: %s", s.Name, why)
		}
	}
	return v
}

// lacks is why a snapshot and the log don't suffice; empty where they do.
func lacks(s *Taken, partitions []Partition, w Wanted) string {
	if s.Schema != w.Schema {
		return "it is of another schema"
	}
	if at := slices.IndexFunc(s.Rules, func(rules string) bool { return rules != w.Rules }); at >= 0 {
		return fmt.Sprintf("it was counted by rules %s, and the configuration's are %s", s.Rules[at], w.Rules)
	}
	for shard, begin := range s.Begin {
		for _, p := range partitions {
			if why := reaches(begin, p); why != "" {
				return fmt.Sprintf("shard %d: %s", shard, why)
			}
		}
	}
	return ""
}

// reaches is why a partition's log doesn't go on from a first ledger; empty where it does.
func reaches(begin map[string]string, p Partition) string {
	text, ok := begin[p.String()]
	if !ok { // it was added since, and counts from its first offset
		if p.Log.Start > 0 {
			return fmt.Sprintf("it has nothing of %v, whose log begins at offset %d", p.Partition, p.Log.Start)
		}
		return ""
	}
	at, err := ledger.Parse(text)
	switch {
	case err != nil:
		return fmt.Sprintf("its position of %v: %v", p.Partition, err)
	case at.From < p.Log.Start:
		return fmt.Sprintf("it begins at offset %d of %v, and the log only at %d", at.From, p.Partition, p.Log.Start)
	case at.To > p.Log.End:
		return fmt.Sprintf("it begins at offset %d of %v, and the log ends at %d", at.To, p.Partition, p.Log.End)
	}
	return ""
}
