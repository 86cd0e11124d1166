package ranking

// Events that passed a window by: they came while it was final, and it was reopened since.

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Passed are events that aren't in a window although the ledger counts them: those that the ledger of the
// instant To has, and that of From hasn't (SealLedgers). A rebuild brings them in.
type Passed struct {
	From time.Time // a seal
	To   time.Time // when it was taken back
}

// Unsaid are events of which nothing says which they are (Seal.Unknown): no ledger is of the instant 0.
func Unsaid(until time.Time) Passed { return Passed{time.UnixMicro(0), until} }

// PassedText is how a record of a window that was ever sealed has them (lua/seal.lua); empty for none.
func PassedText(all []Passed) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = fmt.Sprintf("%d-%d", p.From.UnixMicro(), p.To.UnixMicro())
	}
	return strings.Join(texts, ",")
}

func parsePassed(text string) ([]Passed, error) {
	var all []Passed
	for one := range strings.SplitSeq(text, ",") {
		from, to, _ := strings.Cut(one, "-")
		a, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return nil, err
		}
		b, err := strconv.ParseInt(to, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, Passed{time.UnixMicro(a), time.UnixMicro(b)})
	}
	return all, nil
}
