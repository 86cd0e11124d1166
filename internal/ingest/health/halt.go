// Package health says how the partitions of a consumer are: running, waiting or halted, why,
// and how far behind. A worker notes it in a Status, which guards itself; its Line lies
// in Redis beside the boards (internal/ledger/workers).
package health

import (
	"fmt"

	"github.com/standings/standings/internal/ledger/workers"
)

// Halt is why a partition doesn't go on, and what to do about it. A halted
// partition looks at its cause every second and goes on once that is gone; the
// others run.
type Halt struct { //nolint:errname // what a partition is in, more than what went wrong
	Reason string // one of the constants below: a label
	What   string // what was found, and where
	Remedy string
}

// Reasons of halts.
const (
	HaltTorn      = workers.HaltTorn  // a piece was written in part
	HaltOrphaned  = "ledger_lost"     // boards are there and the ledger isn't
	HaltGap       = "gap"             // events are gone from the log
	HaltTruncated = "truncated"       // the log has lost events that count
	HaltRecreated = "recreated"       // the topic was deleted and created again
	HaltSchema    = "schema"          // the boards were written with another configuration
	HaltBoard     = "board_lost"      // a key of a board is gone
	HaltUnlisted  = "board_unlisted"  // a board's key is there and isn't listed
	HaltBounds    = "window_bounds"   // a window is listed with other bounds
	HaltRule      = "board_rule"      // a window is listed with another rule of its board
	HaltForeign   = "foreign_score"   // a score was written by something else
	HaltRedis     = "redis"           // Redis refuses
	HaltKafka     = "kafka"           // Kafka refuses
	HaltFormat    = "record_format"   // records that can't be read
	HaltTooLarge  = "batch_too_large" // a response larger than memory allows
	HaltRules     = "rules"           // a sweep is by rules that aren't known here
)

// HaltReasons lists all of them, so that every gauge can stand at zero before the
// first halt.
func HaltReasons() []string {
	return []string{
		HaltTorn, HaltOrphaned, HaltGap, HaltTruncated, HaltRecreated, HaltSchema, HaltBoard, HaltUnlisted,
		HaltBounds, HaltRule, HaltForeign, HaltRedis, HaltKafka, HaltFormat, HaltTooLarge, HaltRules,
	}
}

func (h *Halt) Error() string { return fmt.Sprintf("%s: %s", h.What, h.Remedy) }

const RebuildRemedy = "rebuild the boards from the log (consumer rebuild), or restore a backup of Redis"

// LedgerRemedy is for what a rebuild refuses, as it can't tell what the ledger says. Without
// it, it goes by what the group has committed.
const LedgerRemedy = "restore a backup of Redis; or delete the ledger (the key <redis.prefix>:{0}:ledger, or of several shards that shard's), " +
	"whose place the group's offsets take then, and rebuild the boards from the log (consumer rebuild)"

// RuleRemedy is for a board whose rule isn't that of its windows.
const RuleRemedy = "set the board's fields and score back, or give the new rule to a board of another name, or have its windows written anew (consumer rebuild --board)"
