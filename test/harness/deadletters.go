package harness

// A dead-letter topic that somebody deletes while consumers run.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/standings/standings/test/oracle"
)

// span is [from, to) in every partition.
type span struct{ from, to map[int]int64 }

// DeleteDeadLetters deletes the dead-letter topic, and for a while whatever is made in its
// place. It returns how often it was there.
//
// What counts by then has its letters: they are read, and CheckDeadLetters takes them for
// there. Of what the log holds besides, up to the last time that the topic was deleted, a
// letter may have gone unseen, and none is asked for.
func (p *Place) DeleteDeadLetters(t testing.TB, during time.Duration) (deleted int) {
	t.Helper()
	begun := time.Now()
	lost := span{from: p.counted(t)} // before the letters are read
	p.kept = append(p.kept, p.DeadLetters(t)...)
	for {
		r, err := p.admin.DeleteTopics(t.Context(), p.DeadLetterTopic())
		if err == nil {
			err = r.Error()
		}
		switch {
		case err == nil:
			deleted++
		case !errors.Is(err, kerr.UnknownTopicOrPartition):
			t.Fatalf("delete %s: %v", p.DeadLetterTopic(), err)
		}
		if time.Since(begun) >= during {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	// A broker that hasn't heard of it takes letters for a moment more.
	time.Sleep(200 * time.Millisecond)
	lost.to = p.Ends(t)
	p.excused = append(p.excused, lost)
	return deleted
}

// HasDeadLetterTopic reports whether the dead-letter topic is there.
func (p *Place) HasDeadLetterTopic(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callWithin)
	defer cancel()
	topics, err := p.admin.ListTopics(ctx, p.DeadLetterTopic())
	if err != nil {
		t.Fatalf("look for %s: %v", p.DeadLetterTopic(), err)
	}
	return topics.Has(p.DeadLetterTopic())
}

// counted is the offset before which everything counts, by partition; nothing of one that
// Redis doesn't say.
func (p *Place) counted(t testing.TB) map[int]int64 {
	t.Helper()
	all := map[int]int64{}
	positions, err := p.ledger(t.Context())
	if err != nil { // Redis is away: then nothing is known to count
		return all
	}
	for partition, position := range positions {
		from, _, _ := strings.Cut(strings.TrimPrefix(position, "torn:"), "..")
		n, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			t.Fatal(fmt.Errorf("the ledger of partition %d: %w", partition, err))
		}
		all[partition] = n
	}
	return all
}

func (p *Place) isExcused(at oracle.At) bool {
	for _, s := range p.excused {
		if at.Offset >= s.from[at.Partition] && at.Offset < s.to[at.Partition] {
			return true
		}
	}
	return false
}
