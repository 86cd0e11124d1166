package start

import (
	"fmt"
	"strings"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// The plan of a first start is committed to Kafka before it is written to Redis, as the metadata of the offset at which
// a partition begins. In order of events, where the setting start is latest:
//
//	the worker                          Redis                        Kafka
//	finds the log's end at 16
//	commits the plan to begin at 16                                  has the plan
//	writes that to shard 0              has it
//	                                    goes back and has nothing    two events come, at 16 and 17
//	finds the log's end at 18
//	finds the plan and begins at 16
//
// Without the plan no board would have the events at 16 and 17. Nothing has been read while the plan is there: every
// worker commits an offset without it before it reads.

// planVersion begins the metadata of a plan.
const planVersion = "standings-start/1 "

// planPrefix begins the plans that are made by the setting.
func (w Where) planPrefix() string {
	name := [...]string{FromWindow: "window", FromEarliest: "earliest", FromLatest: "latest", FromTime: "time"}[w.From]
	if w.From == FromTime {
		name = fmt.Sprint(name, ":", w.Since())
	}
	return planVersion + name + " "
}

// Plan returns the metadata of a plan to begin at an origin.
func (w Where) Plan(o ledger.Origin) string { return w.planPrefix() + o.String() }

// Plans divides the commits of a group into those of a reading and plans. A plan by another setting is in neither: the
// operator has changed the setting since.
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

// Follow has partitions begin as planned, but not later than they would without the plan. A plan of another topic of
// the same name, or whose events are gone from the log, is void.
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
