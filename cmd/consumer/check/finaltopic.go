package check

import (
	"errors"
	"strings"

	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/units"
)

// judgeFinal checks the topic that final windows are published to, and the topic that records which are
// published.
func judgeFinal(s *section, f *finalFacts) {
	const check = "final topic"
	for _, t := range []*topicFacts{&f.topic, &f.published} {
		says := func(text, remedy string) { s.wrong(check, t.name, text, remedy) }
		switch {
		case errors.Is(t.err, kafkaconn.ErrNoTopic):
			s.ok(check, t.name, "does not exist: it would be created, compacted, if this user has the permission")
			continue
		case deniedBy(t.err):
			says("it does not exist, or this user may not describe it", "let this user describe and write it: final windows stay in Redis until it can")
			continue
		case t.err != nil:
			says(t.err.Error(), "check the brokers' logs: final windows stay in Redis until it can be written")
			continue
		}
		judgeFinalTopic(s, t, t == &f.published)
	}
	if f.unused {
		s.unchecked("rights", "transactional id", "the cluster has no transactions yet: checking the permission to Write the transactional id would create its internal topic", "")
	}
}

func judgeFinalTopic(s *section, t *topicFacts, published bool) {
	const check = "final topic"
	if published {
		if e, ok := errors.AsType[*kafkaconn.TopicError](topic.Published(t.name).Check(len(t.partitions), t.settings)); ok {
			s.wrong(check, t.name, "it "+e.What, e.Remedy)
			return
		}
	}
	if len(t.partitions[0].Replicas) == 1 { // Kafka has no topic without partitions
		s.warn(check, t.name, "one copy: a broker that is lost takes it along", "use 3 replicas, min.insync.replicas 2")
	}
	switch policy := strings.TrimSpace(t.settings["cleanup.policy"]); {
	case deniedBy(t.settingsErr):
		s.unchecked(check, t.name, "no right to read the topic's configuration", "let this user DescribeConfigs, or check yourself that cleanup.policy is compact")
	case t.settingsErr != nil:
		s.unchecked(check, t.name, t.settingsErr.Error(), "look again")
	case policy != "compact":
		s.warn(check, t.name, "cleanup.policy="+policy+": final windows are deleted by their age", "set cleanup.policy=compact, or make sure that readers are never that late")
	default:
		s.ok(check, t.name, units.Plural(int64(len(t.partitions)), "partition")+", cleanup.policy=compact")
	}
}
