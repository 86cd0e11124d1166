package harness

// This file deletes the dead-letter topic while consumers run.

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

// DeleteDeadLetters deletes the dead-letter topic, and for a while every topic that is created in its
// place. It returns how often it deleted the topic.
//
// Dead letters of events that count already are read first, and CheckDeadLetters considers them present.
// Dead letters of other events, up to the last deletion, may be deleted unseen, and are not required.
func (p *Place) DeleteDeadLetters(t testing.TB, during time.Duration) (deleted int) {
	t.Helper()
	begun := time.Now()
	lost := span{from: p.counted(t)} // before the dead letters are read
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
	// A broker that does not know of the deletion accepts dead letters for a moment longer.
	time.Sleep(200 * time.Millisecond)
	lost.to = p.Ends(t)
	p.excused = append(p.excused, lost)
	return deleted
}

// HasDeadLetterTopic reports whether the dead-letter topic exists.
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

// counted returns by partition the offset before which everything counts. It leaves out partitions that
// Redis does not report.
func (p *Place) counted(t testing.TB) map[int]int64 {
	t.Helper()
	all := map[int]int64{}
	positions, err := p.ledger(t.Context())
	if err != nil { // Redis is unavailable: nothing is known to count
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
