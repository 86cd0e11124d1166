package recovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

func TestWhatWouldBringTheStandingsBack(t *testing.T) {
	at := func(n int, start, end int64, whole bool) Partition {
		return Partition{ledger.Partition{Topic: "points", Number: n}, kafkaconn.Log{Start: start, End: end}, whole}
	}
	cut := []Partition{at(0, 100, 500, false), at(1, 0, 50, true)}
	wanted := Wanted{Schema: `{"v":1}`, Rules: "aa"}
	began := time.Date(2026, 11, 25, 19, 0, 0, 0, time.UTC)
	taken := func(name string, change func(*Taken)) Taken {
		s := Taken{Name: name, Began: began, Schema: `{"v":1}`, Rules: []string{"aa"}, Begin: []map[string]string{{"points/0": "120..480@8f3c000000000000", "points/1": "7"}}}
		change(&s)
		return s
	}
	begins := func(text ...string) func(*Taken) {
		return func(s *Taken) {
			s.Begin = []map[string]string{{}}
			for i := 0; i < len(text); i += 2 {
				s.Begin[0][text[i]] = text[i+1]
			}
		}
	}
	good := taken("good", func(*Taken) {})
	for name, c := range map[string]struct {
		partitions []Partition
		snapshots  []Taken
		wanted     Wanted
		by         By
		name, why  string
	}{
		"the log reaches back":                                {[]Partition{at(0, 0, 500, true), at(1, 9, 50, true)}, nil, wanted, Log, "", ""},
		"the log does, whatever snapshots there are":          {[]Partition{at(0, 0, 500, true)}, []Taken{good}, wanted, Log, "", ""},
		"nothing is read yet":                                 {nil, nil, wanted, Log, "", ""},
		"the log doesn't, and there is no snapshot":           {cut, nil, wanted, Nothing, "", ""},
		"the log reaches the snapshot":                        {cut, []Taken{good}, wanted, Snapshot, "good", ""},
		"it begins exactly there":                             {[]Partition{at(0, 120, 500, false), at(1, 7, 50, false)}, []Taken{good}, wanted, Snapshot, "good", ""},
		"it begins one later":                                 {[]Partition{at(0, 121, 500, false)}, []Taken{good}, wanted, Nothing, "", "begins at offset 120 of points/0, and the log only at 121"},
		"one later of another partition":                      {[]Partition{at(0, 100, 500, false), at(1, 8, 50, false)}, []Taken{good}, wanted, Nothing, "", "points/1"},
		"the log ends before it, as of a topic made anew":     {[]Partition{at(0, 100, 479, false)}, []Taken{good}, wanted, Nothing, "", "the log ends at 479"},
		"another schema":                                      {cut, []Taken{taken("s", func(s *Taken) { s.Schema = "{}" })}, wanted, Nothing, "", "another schema"},
		"a shard that begins earlier than the others":         {cut, []Taken{taken("s", func(s *Taken) { s.Begin = append(s.Begin, map[string]string{"points/0": "99", "points/1": "7"}) })}, Wanted{`{"v":1}`, "aa"}, Nothing, "", "shard 1: it begins at offset 99"},
		"other rules":                                         {cut, []Taken{taken("s", func(s *Taken) { s.Rules = []string{"aa", "bb"} })}, wanted, Nothing, "", "counted by rules bb"},
		"no rules were noted":                                 {cut, []Taken{taken("s", func(s *Taken) { s.Rules = nil })}, wanted, Snapshot, "s", ""},
		"a partition that was added since, from offset 0":     {cut, []Taken{taken("s", begins("points/0", "120"))}, wanted, Snapshot, "s", ""},
		"a partition that was added since, and lacks records": {[]Partition{at(0, 100, 500, false), at(1, 1, 50, true)}, []Taken{taken("s", begins("points/0", "120"))}, wanted, Nothing, "", "has nothing of points/1"},
		"a position that can't be read":                       {cut, []Taken{taken("s", begins("points/0", "torn:5"))}, wanted, Nothing, "", "its position of points/0"},
		"an older one does where the newest doesn't":          {cut, []Taken{taken("newest", func(s *Taken) { s.Schema = "{}" }), good}, wanted, Snapshot, "good", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := Decide(c.partitions, c.snapshots, c.wanted)
			require.Equal(t, c.by, v.By)
			require.Equal(t, c.name, v.Name)
			require.Equal(t, c.by == Log, v.WhyNotLog == "")
			if c.why == "" {
				require.Empty(t, v.WhyNotSnapshot)
			} else {
				require.Contains(t, v.WhyNotSnapshot, c.why)
			}
		})
	}
}
