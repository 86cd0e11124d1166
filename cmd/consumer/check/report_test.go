package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foundIn returns all findings of one check, as "outcome: found → to do".
func foundIn(all []finding, check string) string {
	var lines []string
	for _, f := range all {
		if f.Check != check {
			continue
		}
		line := string(f.Result) + ": " + f.Found
		if f.ToDo != "" {
			line += " → " + f.ToDo
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// holds verifies the findings of a check: each line of want begins with the outcome, and its parts,
// separated by …, occur in this order.
func holds(t *testing.T, all []finding, check, want string) {
	t.Helper()
	got := foundIn(all, check)
	rest := got
	for part := range strings.SplitSeq(want, "…") {
		i := strings.Index(rest, part)
		if i < 0 {
			t.Fatalf("%s came out as\n%s\nwant\n%s", check, got, want)
		}
		rest = rest[i+len(part):]
	}
	if want == "" && got != "" {
		t.Fatalf("%s came out as\n%s\nand shouldn't have been looked at", check, got)
	}
	if wanted := strings.Count(want, "\n"); strings.Count(got, "\n") != wanted {
		t.Fatalf("%s came out as\n%s\nwant %d lines", check, got, wanted+1)
	}
	for _, f := range all {
		if (f.Result == outcomeWarning || f.Result == outcomeWrong) && f.ToDo == "" && !strings.Contains(f.Found, "see schema") {
			t.Errorf("%s says what is wrong, and not what to do: %s", f.Check, f.Found)
		}
		if f.Result == outcomeOK && f.ToDo != "" {
			t.Errorf("%s is ok and has something to do: %s", f.Check, f.ToDo)
		}
		if f.Found == "" || f.Section == "" || strings.ContainsRune(f.Found, '\n') {
			t.Errorf("%+v", f)
		}
	}
}

func TestTheWorstFindingIsTheResult(t *testing.T) {
	for want, all := range map[outcome][]outcome{
		outcomeOK: {outcomeOK, outcomeUnchecked}, outcomeWarning: {outcomeOK, outcomeWarning, outcomeUnchecked}, outcomeWrong: {outcomeWarning, outcomeWrong, outcomeOK},
	} {
		var found []finding
		for _, o := range all {
			found = append(found, finding{Result: o})
		}
		if got := conclude(found); got != want {
			t.Errorf("%v came to %s", all, got)
		}
	}
}

func TestAReportFitsItsWidthAndLinesUp(t *testing.T) {
	s := &section{name: sectionKafka}
	s.ok("brokers", "", "2 of 2 addresses answer: kafka-1:9092, kafka-2:9092")
	s.wrong("cleanup.policy", "points", "compact: events with equal keys would vanish before they are counted or counted again", "set cleanup.policy=delete")
	s.ok("start", "points", "continues from the ledger: partitions 0 at 480, 1 at 7; 20 records to read")
	s.ok("start", "other", "continues from the ledger: partitions 0 at 480, 1 at 7; 20 records to read")
	r := &section{name: sectionRedis}
	r.warn("persistence", "", "neither AOF nor RDB", "CONFIG SET appendonly yes, and in its file")
	r.unchecked("lazyfree", "", "this user may not ask by CONFIG: \x1b[2J", "see that lazyfree-lazy-expire is yes")
	report := &checkReport{Findings: append(s.all, r.all...)}
	report.Result = conclude(report.Findings)
	const want = `
CHECK           RESULT       FOUND → WHAT TO DO

Kafka
brokers         ok           2 of 2 addresses answer: kafka-1:9092, kafka-2:9092
cleanup.policy  wrong        points: compact: events with equal keys would vanish before they are
                             counted or counted again → set cleanup.policy=delete
start           ok           points, other: continues from the ledger: partitions 0 at 480, 1 at 7;
                             20 records to read

Redis
persistence     warning      neither AOF nor RDB → CONFIG SET appendonly yes, and in its file
lazyfree        not checked  this user may not ask by CONFIG: \x1b[2J → see that
                             lazyfree-lazy-expire is yes

The consumer wouldn't work like this: 1 wrong, 1 warning, 1 not checked, 3 ok
`
	var out strings.Builder
	require.NoError(t, report.write(&out, false))
	if got := "\n" + out.String(); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}
