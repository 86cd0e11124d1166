package check

// This file checks the topics and their dead-letter topics.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/units"
)

// deniedBy reports whether an error is a missing right of this user.
func deniedBy(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.GroupAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed)
}

func judgeTopic(s *section, t *topicFacts, want *wanted) {
	const check = "topic"
	switch {
	case errors.Is(t.err, kafkaconn.ErrNoTopic):
		s.wrong(check, t.name, "does not exist", "create it: until then the consumer waits. It needs as many partitions as there may be replicas that share the work")
		return
	case deniedBy(t.err):
		s.wrong(check, t.name, "it does not exist, or this user may not describe it", "let this user describe and read it")
		return
	case t.err != nil:
		s.wrong(check, t.name, t.err.Error(), "check the brokers' logs")
		return
	}
	judgePartitions(s, t)
	switch {
	case deniedBy(t.settingsErr):
		s.unchecked("settings", t.name, "no right to read the topic's configuration", "let this user DescribeConfigs, or check it yourself: cleanup.policy=delete, and a retention as long as windows are open")
	case t.settingsErr != nil:
		s.unchecked("settings", t.name, t.settingsErr.Error(), "look again")
	default:
		judgeCleanup(s, t)
		judgeRetention(s, t, want)
		judgeTimestamps(s, t)
		judgeBatches(s, t, want)
	}
	judgeDeadLetters(s, t)
}

// judgePartitions checks leaders and replicas.
func judgePartitions(s *section, t *topicFacts) {
	var leaderless, short []string
	var copies []int
	for _, p := range t.partitions {
		if p.Leader.Host == "" {
			leaderless = append(leaderless, strconv.Itoa(p.ID))
		}
		if len(p.Isr) < len(p.Replicas) {
			short = append(short, strconv.Itoa(p.ID))
		}
		copies = append(copies, len(p.Replicas))
	}
	replicas := slices.Min(copies) // Kafka has no topic without partitions
	text := fmt.Sprintf("%s, replication factor %d", units.Plural(int64(len(t.partitions)), "partition"), replicas)
	least, err := strconv.Atoi(t.settings["min.insync.replicas"])
	if err == nil {
		text += fmt.Sprintf(", min.insync.replicas %d", least)
	}
	if len(leaderless) > 0 {
		s.wrong("topic", t.name, "without a leader: "+partitionsOf(leaderless), "start the brokers that have them: their events cannot be read")
	}
	if len(short) > 0 {
		s.warn("topic", t.name, "replicas are behind or unavailable: "+partitionsOf(short), "check the brokers that have them")
	}
	switch {
	case replicas == 1:
		s.warn("topic", t.name, text, "with one copy, a broker that is lost takes events along: use 3 replicas, min.insync.replicas 2")
	case err == nil && least >= replicas:
		s.warn("topic", t.name, text, "one unavailable broker stops all writes: use more replicas than min.insync.replicas")
	case len(leaderless)+len(short) == 0:
		s.ok("topic", t.name, text)
	}
}

// partitionsOf joins descriptions of partitions, such as "0 at 120", with the right noun.
func partitionsOf(all []string) string {
	if len(all) == 1 {
		return "partition " + all[0]
	}
	return "partitions " + units.Names(all)
}

func judgeCleanup(s *section, t *topicFacts) {
	policy := t.settings["cleanup.policy"]
	if _, compacted := errors.AsType[*topics.CompactError](topics.CheckCompaction(t.name, t.settings)); compacted {
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
	kept := "events are kept for " + units.ShortDuration(retention)
	forgets := topics.Forgets(t.settings, &want.rules)
	if len(forgets) == 0 {
		s.ok(check, t.name, kept+": longer than any window is open")
		return
	}
	var names []string
	longest := time.Duration(0)
	for _, f := range forgets {
		names = append(names, fmt.Sprintf("%s (%s)", f.Period, units.ShortDuration(f.Open)))
		longest = max(longest, f.Open)
	}
	s.warn(check, t.name, fmt.Sprintf("%s, shorter than windows are open: %s. Deleted events cannot be rebuilt", kept, strings.Join(names, ", ")),
		fmt.Sprintf("set retention.ms to %d or more, or have backups of Redis", longest.Milliseconds()))
}

// judgeTimestamps reports which clock sets a record's time, because that time decides which events are
// late.
func judgeTimestamps(s *section, t *topicFacts) {
	whose := "the producer's"
	if t.settings["message.timestamp.type"] == "LogAppendTime" {
		whose = "the broker's clock"
	}
	s.ok("timestamps", t.name, t.settings["message.timestamp.type"]+": "+whose+" is the time of events without occurred_at, and decides which events are late")
}

// judgeBatches compares the largest record batch with the memory for one batch.
func judgeBatches(s *section, t *topicFacts, want *wanted) {
	const check = "max.message.bytes"
	largest, err := strconv.ParseInt(t.settings[check], 10, 64)
	switch {
	case err != nil:
		s.unchecked(check, t.name, "not reported by Kafka", "")
	case largest > want.largestBatch:
		s.warn(check, t.name, fmt.Sprintf("%s: the events of a record batch above %s, a sixteenth of fold_memory, would be dead letters", units.ShortBytes(largest), units.ShortBytes(want.largestBatch)),
			fmt.Sprintf("raise fold_memory to %dMiB, or lower max.message.bytes", (16*largest+units.MiB-1)/units.MiB))
	default:
		s.ok(check, t.name, units.ShortBytes(largest))
	}
}

// judgeDeadLetters checks the topic for a topic's dead letters.
func judgeDeadLetters(s *section, t *topicFacts) {
	const check = "dead letters"
	d := t.deadLetters
	switch {
	case errors.Is(d.err, kafkaconn.ErrNoTopic):
		s.ok(check, d.name, fmt.Sprintf("does not exist: it would be created with %s, if this user has the permission", units.Plural(int64(len(t.partitions)), "partition")))
		return
	case deniedBy(d.err):
		s.wrong(check, d.name, "it does not exist, or this user may not describe it", "let this user describe and write it: a bad event would halt its partition")
		return
	case d.err != nil:
		s.wrong(check, d.name, d.err.Error(), "check the brokers' logs: an invalid event would stop its partition")
		return
	}
	clean := true
	warn := func(found, todo string) {
		clean = false
		s.warn(check, d.name, found, todo)
	}
	if len(d.partitions) < len(t.partitions) {
		warn(fmt.Sprintf("it has %s, and its source %d: some would be added", units.Plural(int64(len(d.partitions)), "partition"), len(t.partitions)),
			"add them, or let this user alter the topic: a dead letter goes to its source's partition")
	}
	if policy := d.settings["cleanup.policy"]; strings.Contains(policy, "compact") {
		warn("cleanup.policy="+policy+": of dead letters with equal keys only the last would stay", "set cleanup.policy=delete")
	}
	ours, errOurs := strconv.ParseInt(d.settings["max.message.bytes"], 10, 64)
	theirs, errTheirs := strconv.ParseInt(t.settings["max.message.bytes"], 10, 64)
	if errOurs == nil && errTheirs == nil && ours < theirs {
		warn(fmt.Sprintf("max.message.bytes %s is less than its source's %s: the dead letter of a larger event has no value", units.ShortBytes(ours), units.ShortBytes(theirs)),
			"raise it to its source's")
	}
	if clean {
		text := units.Plural(int64(len(d.partitions)), "partition")
		if kept, limited := d.settings.Retention(); limited {
			text += ", kept for " + units.ShortDuration(kept)
		} else if d.settings != nil {
			text += ", kept without end"
		}
		s.ok(check, d.name, text)
	}
}
