package check

import (
	"errors"
	"strings"

	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/units"
)

// judgeFinal looks at the topics that final windows are published to, and that record which are.
func judgeFinal(s *section, f *finalFacts) {
	const check = "final topic"
	for _, t := range []*topicFacts{&f.topic, &f.published} {
		says := func(text, remedy string) { s.wrong(check, t.name, text, remedy) }
		switch {
		case errors.Is(t.err, kafkaconn.ErrNoTopic):
			s.ok(check, t.name, "it doesn't exist: it would be created, compacted, if this user may")
			continue
		case deniedBy(t.err):
			says("this user may not see it, or it doesn't exist", "let this user describe and write it: final windows stay in Redis until it can")
			continue
		case t.err != nil:
			says(t.err.Error(), "see what the brokers' logs say of it: final windows stay in Redis until it can be written")
			continue
		}
		judgeFinalTopic(s, t, t == &f.published)
	}
	if f.unused {
		s.unchecked("rights", "transactional id", "nobody has used a transaction on this cluster yet: looking up the right to Write the id would create the topic that they are kept in", "")
	}
}

func judgeFinalTopic(s *section, t *topicFacts, published bool) {
	const check = "final topic"
	if published {
		if e, ok := errors.AsType[*topic.PolicyError](topic.CheckPublished(t.name, len(t.partitions), t.settings)); ok {
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
		s.warn(check, t.name, "cleanup.policy="+policy+": final windows are deleted by their age", "set cleanup.policy=compact, or see that whoever reads it is never that late")
	default:
		s.ok(check, t.name, units.Plural(int64(len(t.partitions)), "partition")+", cleanup.policy=compact")
	}
}
