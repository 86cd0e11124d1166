// Package health reports the state of a consumer's partitions: running, waiting or halted, the reason, and the
// lag. A worker records it in a Status, which is safe for concurrent use; its Line is stored in Redis next to
// the boards (internal/ledger/workers).
package health

import (
	"fmt"

	"github.com/standings/standings/internal/ledger/workers"
)

// Halt is the reason why a partition has stopped, and the remedy. A halted partition checks the cause every
// second and continues once it is gone. Other partitions continue.
type Halt struct { //nolint:errname // what a partition is in, more than what went wrong
	Reason string // one of the constants below, used as a label
	What   string // what was found, and where
	Remedy string
}

// Reasons for halts.
const (
	HaltTorn      = workers.HaltTorn  // a piece was written partly
	HaltOrphaned  = "ledger_lost"     // boards exist, the ledger does not
	HaltGap       = "gap"             // events were deleted from the log
	HaltTruncated = "truncated"       // the log has lost events that count
	HaltRecreated = "recreated"       // the topic was deleted and created again
	HaltSchema    = "schema"          // the boards were written with another configuration
	HaltBoard     = "board_lost"      // a board's key is gone
	HaltUnlisted  = "board_unlisted"  // a board's key exists and is not listed
	HaltBounds    = "window_bounds"   // a window is listed with other bounds
	HaltRule      = "board_rule"      // a window is listed with another rule of its board
	HaltForeign   = "foreign_score"   // another program wrote a score
	HaltRedis     = "redis"           // Redis refuses a call
	HaltKafka     = "kafka"           // Kafka refuses a call
	HaltFormat    = "record_format"   // records cannot be read
	HaltTooLarge  = "batch_too_large" // a response needs more memory than allowed
	HaltRules     = "rules"           // a sweep uses rules that this process does not know
)

// HaltReasons returns all reasons, so that every gauge can be 0 before the first halt.
func HaltReasons() []string {
	return []string{
		HaltTorn, HaltOrphaned, HaltGap, HaltTruncated, HaltRecreated, HaltSchema, HaltBoard, HaltUnlisted,
		HaltBounds, HaltRule, HaltForeign, HaltRedis, HaltKafka, HaltFormat, HaltTooLarge, HaltRules,
	}
}

func (h *Halt) Error() string { return fmt.Sprintf("%s: %s", h.What, h.Remedy) }

const RebuildRemedy = "rebuild the boards from the log (consumer rebuild), or restore a backup of Redis"

// LedgerRemedy is for a ledger that a rebuild refuses because it cannot read it. Without the ledger, a rebuild
// uses the offsets that the group has committed.
const LedgerRemedy = "restore a backup of Redis; or delete the ledger (the key <redis.prefix>:{0}:ledger, or of several shards that shard's), " +
	"whose place the group's offsets take then, and rebuild the boards from the log (consumer rebuild)"

// RuleRemedy is for a board whose rule differs from that of its windows.
const RuleRemedy = "restore the board's fields and score, or give the new rule to a board with another name, or rebuild its windows (consumer rebuild --board)"
