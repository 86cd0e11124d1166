package check

// This file checks what a loss of Redis would cost now.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/units"
)

// lossFacts holds what decides the cost of losing Redis.
type lossFacts struct {
	reach   locate.Reach
	windows []ledger.Window // listed in Redis, with retention not yet over
	now     time.Time       // by Redis's clock
}

// errUnknown means that another finding must be fixed first.
var errUnknown = errors.New("requires Kafka and Redis")

// gatherLoss queries Kafka for how far back its logs reach, and Redis for its windows.
func gatherLoss(ctx context.Context, cfg *config.Config, boards *boards.Boards, consumer *ingest.Consumer, k *kafkaFacts, redis *redisFacts) (*lossFacts, error) {
	if k.err != nil || redis.state == nil {
		return nil, errUnknown
	}
	var topics []app.ReadTopic
	for i := range k.topics {
		t := &k.topics[i]
		if t.err != nil || t.logsErr != nil || t.committedErr != nil {
			return nil, errUnknown
		}
		topics = append(topics, app.ReadTopic{Name: t.name, Partitions: len(t.logs), Committed: t.committed})
	}
	clock := redis.states[0].Clock
	reach, err := app.Reach(ctx, consumer, topics, clock)
	if err != nil {
		return nil, app.ExplainKafka(ctx, err, &cfg.Kafka, topics[0].Name)
	}
	listed, err := boards.ListedWindows(ctx, func(string) bool { return true })
	if err != nil {
		return nil, app.ExplainRedis(ctx, err, cfg)
	}
	f := &lossFacts{reach: reach, now: clock()}
	for _, w := range listed {
		f.windows = append(f.windows, w.Window)
	}
	return f, nil
}

// judgeLoss reports in one line how far back the log reaches, which live windows it does not cover, and the
// maximum age of a backup of Redis. A backup can be restored if the log still has all records after the
// positions in the backup.
func judgeLoss(f *lossFacts, err error) []finding {
	const check = "if Redis is lost"
	s := &section{name: sectionRecovery}
	if err != nil {
		s.unchecked(check, "", err.Error(), "")
		return s.all
	}
	back, age := "to its first event", "of any age"
	if f.reach.Since > 0 {
		since := time.UnixMilli(f.reach.Since)
		reaches := units.ShortDuration(max(0, f.now.Sub(since)))
		back, age = reaches+", to "+since.UTC().Format(time.RFC3339), "at most "+reaches+" old"
	}
	back = "the log reaches back " + back
	if lacking := f.lacking(); len(lacking) > 0 {
		s.warn(check, "", fmt.Sprintf("%s, and does not cover %s; a backup may be %s", back, units.Names(lacking), age),
			"keep backups of Redis that are not older (docs/recovery.md), or have Kafka keep the log for longer")
	} else {
		s.ok(check, "", fmt.Sprintf("%s, and covers all live windows; a backup may be %s", back, age))
	}
	return s.all
}

// lacking names the live windows that the log does not cover, in order of their starts. A window of several
// boards is named once.
func (f *lossFacts) lacking() []string {
	windows := slices.DeleteFunc(slices.Clone(f.windows), func(w ledger.Window) bool { return w.Start >= f.reach.Complete })
	slices.SortFunc(windows, func(a, b ledger.Window) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.Period, b.Period), strings.Compare(a.Name, b.Name))
	})
	var names []string
	for _, w := range windows {
		names = append(names, w.Period+" "+w.Name)
	}
	return slices.Compact(names)
}
