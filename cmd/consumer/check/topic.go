package check

// Check, of the topics and their dead-letter topics.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/fold"
)

// topicFacts is what Kafka says of a topic.
type topicFacts struct {
	name        string
	err         error // it isn't there, or may not be seen
	partitions  []partitionFacts
	settings    ingest.TopicSettings
	settingsErr error

	// Of a topic to read:
	logs         []ingest.Log
	logsErr      error
	committed    map[int]ingest.Commit
	committedErr error
	outlook      []ingest.Outlook // where its partitions would start
	outlookErr   error
	deadLetters  *topicFacts
}

type partitionFacts struct {
	leader   bool
	replicas int
	inSync   int
}

// wanted is what the configuration asks of topics.
type wanted struct {
	rules         fold.Rules
	largestBatch  int64 // bytes of a record batch that fold_memory has room for
	maxEventBytes int64
	group         string
	session       time.Duration
	start         string
	notRedis      error // why nothing is known of the ledger
}

// deniedBy reports whether an error says that this user may not do something.
func deniedBy(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.GroupAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed)
}

func judgeTopic(s *section, t *topicFacts, want *wanted) {
	const check = "topic"
	switch {
	case errors.Is(t.err, clients.ErrNoTopic):
		s.wrong(check, t.name, "it doesn't exist", "create it: until then the consumer waits. It needs as many partitions as there may be replicas that share the work")
		return
	case deniedBy(t.err):
		s.wrong(check, t.name, "this user may not see it, or it doesn't exist", "let this user describe and read it")
		return
	case t.err != nil:
		s.wrong(check, t.name, t.err.Error(), "see what the brokers' logs say of it")
		return
	}
	judgePartitions(s, t)
	if t.settingsErr != nil {
		judgeNoSettings(s, t)
	} else {
		judgeCleanup(s, t)
		judgeRetention(s, t, want)
		judgeTimestamps(s, t)
		judgeBatches(s, t, want)
	}
	judgeDeadLetters(s, t)
}

// judgePartitions looks at leaders and replicas.
func judgePartitions(s *section, t *topicFacts) {
	var leaderless, short []string
	replicas := 0
	for p, f := range t.partitions {
		if !f.leader {
			leaderless = append(leaderless, strconv.Itoa(p))
		}
		if f.inSync < f.replicas {
			short = append(short, strconv.Itoa(p))
		}
		if p == 0 || f.replicas < replicas {
			replicas = f.replicas
		}
	}
	text := fmt.Sprintf("%s, replication factor %d", units.Plural(int64(len(t.partitions)), "partition"), replicas)
	least, err := strconv.Atoi(t.settings["min.insync.replicas"])
	if err == nil {
		text += fmt.Sprintf(", min.insync.replicas %d", least)
	}
	clean := true
	if len(leaderless) > 0 {
		clean = false
		s.wrong("topic", t.name, fmt.Sprintf("without a leader: %s", someOf(leaderless)), "start the brokers that hold them: their events can't be read")
	}
	if len(short) > 0 {
		clean = false
		s.warn("topic", t.name, fmt.Sprintf("replicas are behind or away: %s", someOf(short)), "see to the brokers that hold them")
	}
	switch {
	case replicas == 1 && len(t.partitions) > 0:
		s.warn("topic", t.name, text, "with one copy, a broker that is lost takes events along: use 3 replicas, min.insync.replicas 2")
	case err == nil && least >= replicas:
		s.warn("topic", t.name, text, "one broker that is away stops all writing: have more replicas than min.insync.replicas")
	case clean:
		s.ok("topic", t.name, text)
	}
}

func someOf(partitions []string) string {
	what := "partitions "
	if len(partitions) == 1 {
		what = "partition "
	}
	if len(partitions) > shownPartitions {
		return what + strings.Join(partitions[:shownPartitions], ", ") + fmt.Sprintf(", … %d more", len(partitions)-shownPartitions)
	}
	return what + strings.Join(partitions, ", ")
}

func judgeNoSettings(s *section, t *topicFacts) {
	why, todo := t.settingsErr.Error(), "look again"
	if deniedBy(t.settingsErr) {
		why, todo = "no right to read the topic's configuration", "let this user DescribeConfigs, or see for yourself: cleanup.policy=delete, and a retention as long as windows are open"
	}
	s.unchecked("settings", t.name, why, todo)
}

func judgeCleanup(s *section, t *topicFacts) {
	policy := t.settings["cleanup.policy"]
	if _, compacted := errors.AsType[*ingest.CompactError](t.settings.Compacted(t.name)); compacted {
		s.wrong("cleanup.policy", t.name, policy+": events with equal keys would vanish before they are counted or counted again", "set cleanup.policy=delete")
		return
	}
	s.ok("cleanup.policy", t.name, policy)
}

func judgeRetention(s *section, t *topicFacts, want *wanted) {
	const check = "retention"
	if bytes, err := strconv.ParseInt(t.settings["retention.bytes"], 10, 64); err == nil && bytes >= 0 {
		s.warn(check, t.name, fmt.Sprintf("retention.bytes: a partition keeps %s, however young its events are", units.ShortBytes(bytes)),
			"set retention.bytes=-1, and have retention.ms decide")
	}
	retention, limited := t.settings.Retention()
	if !limited {
		s.ok(check, t.name, "without end")
		return
	}
	kept := "events are kept for " + days(retention)
	forgets := t.settings.Forgets(&want.rules)
	if len(forgets) == 0 {
		s.ok(check, t.name, kept+": longer than any window is open")
		return
	}
	var names []string
	longest := time.Duration(0)
	for _, f := range forgets {
		names = append(names, fmt.Sprintf("%s (%s)", f.Period, days(f.Open)))
		longest = max(longest, f.Open)
	}
	s.warn(check, t.name, fmt.Sprintf("%s, for less than windows are open: %s. What the log has dropped couldn't be rebuilt from it", kept, strings.Join(names, ", ")),
		fmt.Sprintf("set retention.ms to %d or more, or have backups of Redis", longest.Milliseconds()))
}

// days writes a long time as people say it.
func days(d time.Duration) string {
	switch {
	case d > 100*units.Day:
		return fmt.Sprintf("%dd", (d+units.Day-1)/units.Day)
	case d >= 2*units.Day && d%units.Day != 0:
		return units.ShortDuration(d)
	}
	return units.FormatDuration(d)
}

// judgeTimestamps says what a record's time is: it decides what is late.
func judgeTimestamps(s *section, t *topicFacts) {
	const check = "timestamps"
	kind := t.settings["message.timestamp.type"]
	if kind == "LogAppendTime" {
		s.ok(check, t.name, "LogAppendTime: the broker's clock is the time of events without occurred_at, and decides what is late")
		return
	}
	text := kind + ": the producer's"
	for _, limit := range []struct{ key, says string }{{"message.timestamp.before.max.ms", "at most %s old"}, {"message.timestamp.after.max.ms", "at most %s ahead"}} {
		if ms, err := strconv.ParseInt(t.settings[limit.key], 10, 64); err == nil && ms < int64(1<<63-1)/int64(time.Millisecond) {
			text += ", " + fmt.Sprintf(limit.says, days(time.Duration(ms)*time.Millisecond))
		}
	}
	s.ok(check, t.name, text)
}

// judgeBatches holds the largest record batch to the memory there is for one.
func judgeBatches(s *section, t *topicFacts, want *wanted) {
	const check = "max.message.bytes"
	largest, err := strconv.ParseInt(t.settings[check], 10, 64)
	switch {
	case err != nil:
		s.unchecked(check, t.name, "Kafka doesn't tell it", "")
	case largest > want.largestBatch:
		s.warn(check, t.name, fmt.Sprintf("%s: a record batch above %s, a sixteenth of fold_memory, would halt its partition", units.ShortBytes(largest), units.ShortBytes(want.largestBatch)),
			fmt.Sprintf("raise fold_memory to %dMiB, or lower max.message.bytes", (16*largest+units.MiB-1)/units.MiB))
	case largest > want.maxEventBytes+batchOverhead:
		s.ok(check, t.name, fmt.Sprintf("%s; a single event above %s (max_event_bytes) is dead-lettered as malformed", units.ShortBytes(largest), units.ShortBytes(want.maxEventBytes)))
	default:
		s.ok(check, t.name, units.ShortBytes(largest))
	}
}

// batchOverhead is what a batch takes beside its records, and more.
const batchOverhead = 1 << 10

// judgeDeadLetters looks at where the bad events of a topic go.
func judgeDeadLetters(s *section, t *topicFacts) {
	const check = "dead letters"
	d := t.deadLetters
	switch {
	case errors.Is(d.err, clients.ErrNoTopic):
		s.ok(check, d.name, fmt.Sprintf("it doesn't exist: it would be created, with %s, if this user may", units.Plural(int64(len(t.partitions)), "partition")))
		return
	case deniedBy(d.err):
		s.wrong(check, d.name, "this user may not see it, or it doesn't exist", "let this user describe and write it: a bad event would halt its partition")
		return
	case d.err != nil:
		s.wrong(check, d.name, d.err.Error(), "see what the brokers' logs say of it: a bad event would hold up its partition")
		return
	}
	clean := true
	warn := func(found, todo string) {
		clean = false
		s.warn(check, d.name, found, todo)
	}
	if len(d.partitions) < len(t.partitions) {
		warn(fmt.Sprintf("it has %s, and its source %d: some would be added", units.Plural(int64(len(d.partitions)), "partition"), len(t.partitions)),
			"add them, or let this user alter the topic: a bad event goes to its source's partition")
	}
	if policy := d.settings["cleanup.policy"]; strings.Contains(policy, "compact") {
		warn("cleanup.policy="+policy+": of dead letters with equal keys only the last would stay", "set cleanup.policy=delete")
	}
	ours, errOurs := strconv.ParseInt(d.settings["max.message.bytes"], 10, 64)
	theirs, errTheirs := strconv.ParseInt(t.settings["max.message.bytes"], 10, 64)
	if errOurs == nil && errTheirs == nil && ours < theirs {
		warn(fmt.Sprintf("max.message.bytes %s is less than its source's %s: a larger event goes there without its value", units.ShortBytes(ours), units.ShortBytes(theirs)),
			"raise it to its source's")
	}
	if clean {
		text := units.Plural(int64(len(d.partitions)), "partition")
		if kept, limited := d.settings.Retention(); limited {
			text += ", kept for " + days(kept)
		} else if d.settings != nil {
			text += ", kept without end"
		}
		s.ok(check, d.name, text)
	}
}
