package check

import (
	"strings"
	"testing"
)

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
cleanup.policy  wrong        points: compact: events with equal keys would vanish
                             before they are counted or counted again → set
                             cleanup.policy=delete
start           ok           points, other: continues from the ledger: partitions
                             0 at 480, 1 at 7; 20 records to read

Redis
persistence     warning      neither AOF nor RDB → CONFIG SET appendonly yes, and
                             in its file
lazyfree        not checked  this user may not ask by CONFIG: \x1b[2J → see that
                             lazyfree-lazy-expire is yes

The consumer wouldn't work like this: 1 wrong, 1 warning, 1 not checked, 3 ok
`
	var out strings.Builder
	if err := report.write(&out, 82, false); err != nil {
		t.Fatal(err)
	}
	if got := "\n" + out.String(); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}
