package check

import (
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
)

// judgeDuplicates holds event.duplicates, if it is on, against the memory that there is for it.
func judgeDuplicates(cfg *config.Config, topics []topicFacts) []finding {
	if cfg.Duplicates == 0 {
		return nil
	}
	const check = "event.duplicates"
	s, partitions := &section{name: sectionConfiguration}, 0
	for i := range topics {
		partitions += len(topics[i].partitions)
	}
	if err := clients.CheckDuplicates(cfg, partitions); err != nil {
		s.wrong(check, "", err.Error(), "lower it, or raise event.duplicates_memory")
	} else {
		s.ok(check, "", units.Thousands(cfg.Duplicates)+" records of "+units.Plural(int64(partitions), "partition"))
	}
	return s.all
}
