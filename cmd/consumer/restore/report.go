package restore

// What a restore is about to do and what came of it, as text and as JSON. docs/json.md has the fields.

import (
	"errors"
	"fmt"
	"strings"
	"time"

	rebuilding "github.com/standings/standings/cmd/consumer/rebuild"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
)

type report struct {
	Restored   bool              `json:"restored"`
	DryRun     bool              `json:"dry_run"`
	Refused    []string          `json:"refused"` // why it can't be done
	Snapshot   string            `json:"snapshot"`
	TakenAt    string            `json:"taken_at"`
	AgeMS      int64             `json:"age_ms"`
	Windows    int               `json:"windows"`
	Standings  int64             `json:"standings"`    // rows: a member that was read twice is two
	Shards     int               `json:"shards"`       // of the snapshot
	ToShards   int               `json:"to_shards"`    // that there are now
	Empty      int               `json:"empty_shards"` // in which Redis has nothing; the others have live boards
	ToRead     int64             `json:"to_read"`
	Partitions []reportPartition `json:"partitions"`
	Records    *int64            `json:"records"` // that were read; null of a dry run
	TookMS     *int64            `json:"took_ms"`
}

type reportPartition struct {
	Partition string `json:"partition"`
	From      int64  `json:"from"`
	Reach     int64  `json:"snapshot_to"`
	To        int64  `json:"to"`
	LogStart  int64  `json:"log_start"`
	LogEnd    int64  `json:"log_end"`
}

func newReport(s *rebuild.Snapshot, c *rebuild.Check, f *flags, now time.Time) *report {
	r := &report{
		DryRun: f.dryRun, Refused: append([]string{}, c.Refused...), Snapshot: s.Name, TakenAt: units.TimeMS(s.Taken().UnixMilli()),
		AgeMS: now.Sub(s.Taken()).Milliseconds(), Windows: len(s.Windows()), Standings: s.Rows(), Shards: len(s.Surveys), ToShards: c.Shards, Empty: len(c.Empty),
		ToRead: c.Records(), Partitions: []reportPartition{},
	}
	for _, p := range c.Partitions {
		r.Partitions = append(r.Partitions, reportPartition{p.Field, p.From, p.Reach, p.Until, p.Log.Start, p.Log.End})
	}
	return r
}

// result takes in what came of it.
func (r *report) result(of *rebuild.Result, err error) {
	r.Restored, r.Records, r.TookMS = of.Swapped, &of.Records, new(of.Took.Milliseconds())
	if refused, ok := errors.AsType[*shadow.RefusedError](err); ok {
		r.Refused = append(r.Refused, refused.Reasons...)
	}
}

func planText(s *rebuild.Snapshot, c *rebuild.Check, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Snapshot %s, begun %s ago, at %s: %s, %s\n", s.Name, now.Sub(s.Taken()).Round(time.Second), s.Taken().Format(time.RFC3339),
		units.Plural(int64(len(s.Windows())), "window"), units.Plural(s.Rows(), "standing"))
	if of := len(s.Surveys); of != c.Shards {
		fmt.Fprintf(&b, "It is of %s, and goes to %d.\n", units.Plural(int64(of), "shard"), c.Shards)
	}
	switch {
	case len(c.Partitions) == 0:
		return b.String()
	case len(c.Empty) == c.Shards:
		b.WriteString("Redis has no boards under the prefix: consumers are held up until they are back.\n\n")
	case len(c.Empty) > 0:
		fmt.Fprintf(&b, "Redis has nothing on %s, which consumers are held up on.\n\n", rebuild.ShardNames(c.Empty, c.Shards))
	default:
		b.WriteString("Redis has boards under the prefix, which consumers go on with until the restored ones take their place.\n\n")
	}
	t := terminal.NewTable("PARTITION", "FROM", "TO", "RECORDS", "SNAPSHOT TO", "LOG FROM")
	for i := 1; i < 6; i++ {
		t.Right[i] = true
	}
	for _, p := range c.Partitions {
		t.Add(p.Field, units.Thousands(p.From), units.Thousands(p.Until), units.Thousands(p.Until-p.From), units.Thousands(p.Reach), units.Thousands(p.Log.Start))
	}
	t.Write(&b)
	b.WriteString("\n")
	return b.String()
}

func resultText(s *rebuild.Snapshot, r *rebuild.Result) string {
	return fmt.Sprintf("%s\nRestored %s, and read %s records, in %s.\n", rebuilding.SayActions(r.Plan, false), s.Name,
		units.Thousands(r.Records), r.Took.Round(100*time.Millisecond))
}
