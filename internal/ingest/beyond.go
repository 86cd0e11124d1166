package ingest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

// maxBeyond is the maximum number of refused members of a batch whose out-of-range field is remembered until
// their dead letters are written: this memory is outside of the budget. The dead letters of the other members
// name no field.
const maxBeyond = 1000

// maxMessage is the maximum length of a dead letter's message, in bytes.
const maxMessage = 200

// keepBeyond remembers which members of an answer would leave the range of a field.
func (b *batch) keepBeyond(all []ledger.Beyond) {
	for _, one := range all {
		if len(b.beyond) == maxBeyond {
			return
		}
		if b.beyond == nil {
			b.beyond = map[string]ledger.Beyond{}
		}
		b.beyond[one.Member] = one
	}
}

// refusalMessage returns the message for the dead letters of a refused member: one line of at most maxMessage
// bytes, with the most important facts first.
func (b *batch) refusalMessage(member []byte, reason ledger.Reason) string {
	text := fmt.Sprintf("%s with the events of %q from offset %d to %d", b.why(member, reason), clipped(member), b.From(), b.To()-1)
	for i := min(len(text), maxMessage); ; i-- {
		if i == len(text) || utf8.RuneStart(text[i]) {
			return text[:i]
		}
	}
}

// why returns the reason for which a member is refused.
func (b *batch) why(member []byte, reason ledger.Reason) string {
	if reason == ledger.WindowLimit {
		return "a window would be opened beyond max_windows, or in its last tenth on a board that has none"
	}
	of := &b.by.events
	if at, ok := b.beyond[string(member)]; ok {
		if rule := of.Others.Of(at.Window.Board); rule != nil && at.Field <= rule.Fields.Len() {
			return whichField(&at, rule)
		}
	}
	text := fmt.Sprintf("a standing would leave ±%d points", of.MaxPoints)
	if len(of.Others) > 0 {
		text += ", or the range of a field"
	}
	return text
}

// whichField names the board, the field, the value that it would have, and its max.
func whichField(at *ledger.Beyond, rule *rules.Rule) string {
	board, window := at.Window.Board, at.Window.Period+" "+at.Window.Name
	if at.Field == 0 {
		var fields []string
		for _, f := range rule.Fields.List() {
			fields = append(fields, fmt.Sprintf("%s to %d", f.Name, f.Max))
		}
		return fmt.Sprintf("a field of board %s (%s) would leave its range in %s", board, strings.Join(fields, ", "), window)
	}
	field := rule.Fields.At(at.Field - 1)
	var tuple rules.Tuple
	tuple[at.Field-1] = at.Digit
	limits := fmt.Sprintf("0 to its max of %d", field.Max)
	if field.Signed {
		limits = fmt.Sprintf("its max of ±%d", field.Max)
	}
	return fmt.Sprintf("%s of board %s would be %d, outside of %s, in %s", field.Name, board, rule.Fields.Digits(tuple)[at.Field-1], limits, window)
}
