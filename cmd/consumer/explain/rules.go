package explain

// This file chooses the rules for judging records: the configured ones, except in a sweep in progress that
// started under others.

import (
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
	boardrules "github.com/standings/standings/internal/rules"
)

// ruleset is one set of rules, parsed.
type ruleset struct {
	id       ledger.Fingerprint
	events   event.Rules
	windows  fold.Rules
	lookBack int64 // offsets searched for duplicates; 0: duplicates count
}

func (r *ruleset) judge(q *question) *judge { return newJudge(q, r.events, r.windows, r.lookBack) }

// rulesOf returns the rules of a configuration, as the consumer parses them.
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

// ofSweep returns the rules of the sweep in progress at a position if they differ from r. It returns nil if
// their text is missing or this program cannot apply it.
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
