package start

import (
	"fmt"
	"strings"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Before a first start writes to Redis, it commits its plan to Kafka, as the metadata of the offset at which a
// partition starts. With the setting start: latest, the events in order are:
//
//    the worker                          Redis                        Kafka
//    finds the log's end at 16
//    commits the plan to start at 16                                  has the plan
//    writes that to shard 0              has it
//                                        goes back and has nothing    two events come, at 16 and 17
//    finds the log's end at 18
//    finds the plan and starts at 16
//
// Without the plan no board would have the events at 16 and 17. While the plan exists, nothing has been read:
// every worker commits an offset without a plan before it reads.

// planVersion is the start of a plan's metadata.
const planVersion = "standings-start/1 "

// planPrefix is the start of the plans of this setting.
func (w Where) planPrefix() string {
	name := [...]string{FromWindow: "window", FromEarliest: "earliest", FromLatest: "latest", FromTime: "time"}[w.From]
	if w.From == FromTime {
		name = fmt.Sprint(name, ":", w.Since())
	}
	return planVersion + name + " "
}

// Plan returns the metadata of a plan to start at an origin.
func (w Where) Plan(o ledger.Origin) string { return w.planPrefix() + o.String() }

// Plans divides a group's commits into commits of positions and plans. It leaves out a plan of another setting:
// the operator has changed the setting since.
func (w Where) Plans(committed map[int]kafkaconn.Commit) (read map[int]kafkaconn.Commit, plans map[int]ledger.Origin) {
	read, plans = map[int]kafkaconn.Commit{}, map[int]ledger.Origin{}
	for p, c := range committed {
		if !strings.HasPrefix(c.Metadata, planVersion) {
			read[p] = c
			continue
		}
		if origin, ok := strings.CutPrefix(c.Metadata, w.planPrefix()); ok {
			if o, err := ledger.ParseOrigin(origin); err == nil {
				plans[p] = o
			}
		}
	}
	return read, plans
}

// Follow makes partitions start as planned, but not later than without the plan. It ignores a plan of another
// topic with the same name, and a plan whose events are gone from the log.
func (t *Terms) Follow(plans map[int]ledger.Origin, set []ledger.StartPosition, trails []trail.Trail, all []Beginning) {
	for n := range set {
		b := &set[n]
		o, ok := plans[b.Partition.Number]
		if !ok || o.Offset < all[n].Log.Start || o.Offset > b.At.From || Recreated(b.Partition.Topic, o.String(), b.Origin.Log) != nil {
			continue
		}
		b.At, b.Origin, trails[n] = ledger.At(o.Offset), &o, trail.Trail{}
		trails[n].Add(o.Offset, t.LatestBefore(o))
	}
}
