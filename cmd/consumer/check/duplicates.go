package check

import (
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/units"
)

// judgeDuplicates reports the memory that event.duplicates takes, if it is on.
func judgeDuplicates(cfg *config.Config, topics []topicFacts) []finding {
	if cfg.Duplicates == 0 {
		return nil
	}
	s, partitions := &section{name: sectionConfiguration}, 0
	for i := range topics {
		partitions += len(topics[i].partitions)
	}
	if err := app.CheckDuplicates(cfg, partitions); err != nil {
		s.wrong("event.duplicates", "", err.Error(), "lower it, or give this process more memory")
		return s.all
	}
	s.ok("event.duplicates", "", units.Thousands(cfg.Duplicates)+" records of "+units.Plural(int64(partitions), "partition")+" take "+units.ShortBytes(app.DuplicatesMemory(cfg, partitions)))
	return s.all
}
