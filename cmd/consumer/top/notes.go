package top

// This file reports whether a board is shown completely. The state is part of every answer about a board.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boards"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// lost returns an error if the board is lost.
func (b *board) lost() error {
	what := map[string]string{
		ranking.LostBoard:  "it is listed, but its key is missing in Redis",
		ranking.Unlisted:   "its key is in Redis but not listed: another program wrote it, or a part of Redis was restored",
		ranking.LostLedger: "Redis lists windows but has no ledger, so it is unknown which events count",
		ranking.LostSchema: "Redis has a ledger but no schema, so the format of the scores is unknown",
		ranking.LostShard:  "it is empty under this prefix, while other shards are not",
	}[b.Lost]
	if b.Lost == "" {
		return nil
	}
	todo := "rebuild the boards from the log (consumer rebuild), or restore a backup of Redis"
	if b.Lost == ranking.Unlisted {
		todo = "delete the key if it is not yours, otherwise " + todo
	}
	where := ""
	if b.LostOn != "" {
		where = " in " + b.LostOn
	}
	return fmt.Errorf("the board %s %s %s is lost (%s)%s: %s; %s", b.Name, b.Window.Period, b.Window.Name, b.Lost, where, what, todo)
}

// notes returns what a reader must know about the rows.
func (b *board) notes() []string {
	var all []string
	if b.Archived {
		of := fmt.Sprintf("final, revision %d", b.Revision)
		if b.Revision == 0 {
			of = "a backup of an open window, without later events"
		}
		all = append(all, fmt.Sprintf("from the archive, as of %s: %s", units.TimeMS(b.AsOf.UnixMilli()), of))
	} else if b.Revision > 0 {
		all = append(all, fmt.Sprintf("final, revision %d", b.Revision))
	}
	if len(b.Incomplete) > 0 {
		all = append(all, "incomplete: events of this window may be missing, from before the log began or the period was added, or from a gap in the log, of "+strings.Join(b.Incomplete, ", "))
	}
	if n := len(b.Refilling); n > 0 {
		var fields []string
		for _, r := range b.Refilling {
			fields = append(fields, r.Field)
		}
		all = append(all, fmt.Sprintf("refilling after Redis was lost or the boards were rebuilt: %s of %s still to read; until then boards are partial",
			units.Plural(b.Left(), "record"), units.Names(fields)))
	}
	all = append(all, b.behind()...)
	if b.note != "" {
		all = append(all, b.note)
	}
	return all
}

// behind reports how far the boards are behind the log, and partitions that are not counting.
func (b *board) behind() []string {
	var all []string
	if b.Lag.Known && b.Lag.Records > 0 && b.CatchingUp() {
		ago := "a moment"
		if age := b.Beside.Now.Sub(b.ReportedAt); age >= time.Second {
			ago = units.ShortDuration(age.Truncate(time.Second))
		}
		all = append(all, fmt.Sprintf("catching up: %s, %s behind, as of %s ago", units.Plural(b.Lag.Records, "record"), units.ShortDuration(b.Behind), ago))
	}
	if b.Unread && !b.Lag.Known {
		all = append(all, "catching up: the lag is not known yet")
	}
	for _, r := range slices.Concat(b.Halted, b.Waiting, b.Blocked) {
		text := fmt.Sprintf("not counting: %s is %s", r.Field, terminal.Plain(r.Line.State))
		if r.Line.Reason != "" {
			text += " (" + terminal.Plain(r.Line.Reason) + ")"
		}
		text += ": " + terminal.Plain(r.Line.What)
		if r.Line.Remedy != "" {
			text += "\n  to do: " + terminal.Plain(r.Line.Remedy)
		}
		all = append(all, text)
	}
	var silent []string
	youngest := time.Duration(0)
	for _, r := range b.Silent {
		silent = append(silent, r.Field)
		if r.Line.State != "" && (youngest == 0 || r.Age < youngest) {
			youngest = r.Age
		}
	}
	if len(silent) > 0 {
		since := ""
		if youngest > 0 {
			since = " for " + units.ShortDuration(youngest.Truncate(time.Second))
		}
		all = append(all, fmt.Sprintf("no worker of %s has reported%s: later events are not counted", units.Names(silent), since))
	}
	if len(b.NotBegun) > 0 {
		all = append(all, "no events have been read yet of "+strings.Join(b.NotBegun, ", "))
	}
	return all
}

// absent returns an error if the board does not exist. A board that is being refilled may still appear, so
// that is not an error.
func (b *board) absent() error {
	switch {
	case b.Listed || b.Lost != "" || len(b.Refilling) > 0:
		return nil
	case b.Beside.Schema == "":
		return fmt.Errorf("Redis has no keys under the prefix %q: no consumer has started yet, or Redis was lost", b.prefix)
	}
	return fmt.Errorf("no event has been counted in %s %s %s, or its retention is over", b.Name, b.Window.Period, b.Window.Name)
}

// missing is like absent, and suggests boards and windows that exist, which reads the list of all windows.
func (r *Reader) missing(ctx context.Context, b *board) error {
	err := b.absent()
	if err == nil || b.Beside.Schema == "" {
		return err
	}
	now := *r.Reader
	now.Boards = r.views.Boards()
	return boards.NoWindow(ctx, &now, b.Name, b.Window)
}
