package ingest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// The start table: where a worker goes on, from what Redis and Kafka hold. It is
// pure; locate.go gathers the facts and carries out what is decided.

// facts are what the decision for one partition rests on.
type facts struct {
	topic     string
	partition int
	found     string // the ledger's text; empty where it has none
	others    bool   // the ledger has other partitions of the topic
	ledger    int    // entries of the ledger
	windows   int    // listed windows
	// schemaGone: there is none. That and a ledger don't go together.
	schemaGone bool
	committed  bool // Kafka has offsets of this group for the topic
	log        bounds
}

// step is what to do.
type step int

const (
	// goOn from the position.
	goOn step = iota
	// confirm that the log ends before the position, for a while.
	confirm
	// skip a gap: the position moves over it, and an origin says so.
	skip
	// join a topic that has begun already: its partition was added.
	join
	// begin the whole topic, at what the configuration says.
	begin
	// recover the whole topic: Redis was lost.
	recoverAll
)

type decision struct {
	step step
	at   ledger.Position // for goOn, confirm and skip
}

// ledgerRemedy is for what a rebuild refuses, as it can't tell what the ledger says. Without
// it, it goes by what the group has committed.
const ledgerRemedy = "restore a backup of Redis; or delete the ledger (the key <redis.prefix>:{0}:ledger), " +
	"whose place the group's offsets take then, and rebuild the boards from the log (consumer rebuild)"

// decide goes through the table in its order.
func decide(f facts, onGap OnGap) (decision, error) {
	name := fmt.Sprintf("%s/%d", f.topic, f.partition)
	at, err := ledger.Parse(f.found)
	mend := rebuildRemedy
	if _, err := ledger.Counted(f.found); err != nil || f.schemaGone {
		mend = ledgerRemedy
	}
	switch {
	case f.found != "" && errors.Is(err, ledger.ErrTorn):
		return decision{}, &Halt{HaltTorn,
			fmt.Sprintf("the ledger of %s stands at %s: a script died in the middle of a piece", name, f.found), mend}
	case f.found != "" && err != nil:
		return decision{}, &Halt{HaltTorn, fmt.Sprintf("the ledger of %s is not readable: %v", name, err), ledgerRemedy}
	case f.ledger == 0 && f.windows > 0:
		return decision{}, &Halt{HaltOrphaned,
			fmt.Sprintf("Redis lists %d windows and has no ledger: nothing says which events are in them", f.windows), rebuildRemedy}
	case f.ledger > 0 && f.schemaGone:
		return decision{}, &Halt{HaltSchema,
			"Redis has a ledger and no schema: nothing says what the scores beside it were written with", ledgerRemedy}
	case f.found != "":
		return placed(f, name, at, onGap)
	case f.others:
		if f.log.start > 0 && onGap == GapHalts {
			return decision{}, gap(name, 0, f.log.start)
		}
		return decision{step: join}, nil
	case f.committed:
		return decision{step: recoverAll}, nil
	}
	return decision{step: begin}, nil
}

// placed is the decision where the ledger has a position.
func placed(f facts, name string, at ledger.Position, onGap OnGap) (decision, error) {
	switch {
	case at.To > f.log.end:
		return decision{confirm, at}, nil
	case at.From >= f.log.start:
		return decision{goOn, at}, nil
	case onGap == GapHalts:
		return decision{}, gap(name, at.From, f.log.start)
	}
	// What is left of a sweep is still swept: the members from its hash on.
	if f.log.start < at.To {
		at.From = f.log.start
	} else {
		at = ledger.At(f.log.start)
	}
	return decision{skip, at}, nil
}

func gap(name string, from, start int64) *Halt {
	return &Halt{HaltGap,
		fmt.Sprintf("the events of %s from offset %d to %d are gone from the log and were never counted", name, from, start-1),
		"restore them if you can, or set on_gap: continue, which counts what is left and shows the windows as incomplete"}
}

// truncated is the halt of a log that ends before the ledger's position.
func truncated(name string, at ledger.Position, log bounds) *Halt {
	return &Halt{HaltTruncated,
		fmt.Sprintf("%s ends at offset %d, before the ledger's position %v: the topic was recreated, or truncated by an unclean election", name, log.end, at),
		"for a recreated topic, use another redis.prefix and group; for a truncated one, stop the consumers, delete the keys under the prefix and start them again: they read what the log has"}
}

// otherSchema is the halt where the standings aren't what this process writes.
func otherSchema(err error) *Halt {
	return &Halt{HaltSchema, err.Error(), "a partition of this topic can't be counted here until then"}
}

// liveFrom is the start of the earliest window that lives at a moment: until its
// end plus its retention.
func liveFrom(c periods.Calendar, retention map[periods.Period]time.Duration, now time.Time) (int64, error) {
	ms := now.UnixMilli()
	earliest := ms
	for p, kept := range retention {
		w, err := c.At(p, ms)
		if err != nil {
			return 0, fmt.Errorf("the clock of Redis says %s: %w", now.UTC().Format(time.RFC3339), err)
		}
		for {
			earliest = min(earliest, w.Start)
			before, ok := c.Previous(w)
			if !ok || before.End+kept.Milliseconds() <= ms {
				break
			}
			w = before
		}
	}
	return earliest, nil
}

// topicOf splits a field of the ledger: <topic>/<partition>.
func topicOf(field string) string {
	i := strings.LastIndexByte(field, '/')
	return field[:max(i, 0)]
}
