package explain

// By which rules records are judged: those of the configuration, but for a sweep that was begun
// by others and is under way.

import (
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
	boardrules "github.com/standings/standings/internal/rules"
)

// ruleset is one set of rules as it is read.
type ruleset struct {
	id       ledger.Fingerprint
	events   event.Rules
	windows  fold.Rules
	lookBack int64 // for duplicates; 0: repeats count
}

func (r *ruleset) judge(q *question) *judge { return newJudge(q, r.events, r.windows, r.lookBack) }

// rulesOf are those of a configuration, as the consumer reads them.
func rulesOf(cfg *config.Config) (*ruleset, error) {
	set, err := app.RuleSet(cfg)
	if err != nil {
		return nil, err
	}
	return readRules(set.Text(), cfg)
}

func readRules(text string, cfg *config.Config) (*ruleset, error) {
	c, err := app.Counting(text, cfg)
	if err != nil {
		return nil, err
	}
	id, err := ledger.ParseFingerprint(boardrules.Fingerprint(text))
	return &ruleset{id, c.Events, c.Windows, c.Duplicates}, err
}

// ofSweep are the rules of the sweep that a position is in the middle of, if they are others. Of
// a text that is gone, or that this program can't go by, there are none.
func (r *ruleset) ofSweep(cfg *config.Config, at ledger.Position, kept map[string]string) *ruleset {
	if !at.Sweeping() || at.Rules == 0 || at.Rules == r.id {
		return nil
	}
	other, err := readRules(kept[at.Rules.String()], cfg)
	if err != nil || other.id != at.Rules {
		return nil
	}
	return other
}
