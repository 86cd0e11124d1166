package harness

// This file compares everything at a place with the oracle.

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/oracle"
)

// Check compares Redis and the dead letters with the oracle: every committed record that was published here
// must count once, and nothing else.
//
//	the ledger is at the log's ends
//	every sorted set is equal, member by member, to the last bit of a score; members in Banned are in
//	  the hidden set
//	the listing of windows, and the expiries of their keys, are equal
//	every bad record is on the dead-letter topic at least once, and no other record is; dead letters
//	  that DeleteDeadLetters may have deleted are excused
func (p *Place) Check(t testing.TB) {
	t.Helper()
	if behind := p.Behind(t.Context()); behind != "" {
		t.Errorf("not caught up: %s", behind)
	}
	p.CheckBoards(t)
	for _, q := range p.all() {
		q.CheckDeadLetters(t)
	}
}

// CheckBoards is the part of Check for Redis.
func (p *Place) CheckBoards(t testing.TB) {
	t.Helper()
	now := p.RedisTime(t)
	want, err := p.boardsOracle(t).Expected(now)
	if err != nil {
		t.Fatal(err)
	}
	d := &oracle.Differences{}
	listed := p.Hash(t, "windows")
	for name, text := range listed {
		listed[name] = listedWith(text, "")
	}
	d.Texts("listed windows", want.Windows, listed)
	shown, hidden := p.split(want.Boards)
	d.Boards(shown, p.Boards(t))
	d.Boards(hidden, p.hidden(t, hiddenSuffix))
	p.expiries(t, d, want.Expires)
	d.Texts("names", want.Names, p.Names(t))
	p.listings(t, d, want)
	if text := d.String(); text != "" {
		t.Errorf("Redis isn't what the published records come to:\n%s", text)
	}
}

// listedWith returns the listing with the names of the window's sets on a shard, and without the mark of a
// final window.
func listedWith(text, sets string) string {
	l, err := oracle.ReadListing(text)
	if err != nil {
		return text
	}
	l.Final, l.Sets = 0, sets
	return l.Text()
}

// listings compares each shard's listing with its sorted sets.
func (p *Place) listings(t testing.TB, d *oracle.Differences, want oracle.Expected) {
	t.Helper()
	shards, err := p.hashes(t.Context(), "windows")
	if err != nil {
		t.Fatal(err)
	}
	for name := range want.Boards {
		for shard, listed := range shards {
			shown, err := p.redis.Exists(t.Context(), p.KeyIn(shard, name)).Result()
			if err != nil {
				t.Fatal(err)
			}
			hidden, err := p.redis.Exists(t.Context(), p.KeyIn(shard, name+hiddenSuffix)).Result()
			if err != nil {
				t.Fatal(err)
			}
			wanted := ""
			switch {
			case want.Windows[name] == "":
			case shown+hidden > 0:
				wanted = listedWith(want.Windows[name], [][]string{{"", "hidden"}, {"", "both"}}[shown][hidden])
			case isFinal(listed[name]):
				wanted = listedWith(want.Windows[name], "none")
			}
			l, _ := oracle.ReadListing(listed[name]) // if no shard lists it: none
			if text := listedWith(listed[name], l.Sets); text != wanted {
				d.Addf("%s: shard %d lists it as %q, want %q", name, shard, text, wanted)
			}
		}
	}
}

// RedisTime returns Redis's clock, which decides which windows live.
func (p *Place) RedisTime(t testing.TB) time.Time {
	t.Helper()
	now, err := p.redis.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// expiries compares the expiries of keys, as precisely as a time to live permits.
func (p *Place) expiries(t testing.TB, d *oracle.Differences, want map[string]int64) {
	t.Helper()
	const near = 5 * time.Second
	for name, at := range want {
		there, keys := 0, []string(nil)
		for shard := range p.Shards() {
			keys = append(keys, p.KeyIn(shard, name))
			if len(p.Banned) > 0 {
				keys = append(keys, p.KeyIn(shard, name+hiddenSuffix))
			}
		}
		for _, key := range keys {
			before := p.RedisTime(t)
			left, err := p.redis.PTTL(t.Context(), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			if left == -2 && len(keys) > 1 { // no member is on this shard, or none is hidden there
				continue
			}
			there++
			// Redis answered at some time between the two, however far they are apart.
			first, last := before.Add(left), p.RedisTime(t).Add(left)
			if want := time.UnixMilli(at); left < 0 || first.After(want.Add(near)) || last.Before(want.Add(-near)) {
				d.Addf("%s: goes at %v (%v to live), want %v", name, first.UTC(), left, want.UTC())
			}
		}
		if there == 0 {
			d.Addf("%s: no shard has it", name)
		}
	}
}

// ourHeaders are the headers that a dead letter adds to the record's own. The event's id may follow.
var ourHeaders = []string{
	"standings-reason", "standings-message", "standings-topic", "standings-partition", "standings-offset", "standings-timestamp",
}

// CheckDeadLetters is the part of Check for the dead-letter topic.
func (p *Place) CheckDeadLetters(t testing.TB) {
	t.Helper()
	bad := p.Oracle(t).Bad()
	found := map[oracle.At]bool{}
	d := &oracle.Differences{}
	for _, letter := range slices.Concat(p.kept, p.DeadLetters(t)) {
		at, wrong := p.checkDeadLetter(letter, bad)
		if wrong != "" {
			d.Addf("the dead letter at %d/%d, of %v: %s", letter.Partition, letter.Offset, at, wrong)
		}
		found[at] = true
	}
	for at, reason := range bad {
		if !found[at] && !p.isExcused(at) {
			d.Addf("the record %v is %s and has no dead letter: %.80q", at, reason, p.original(at).Value)
		}
	}
	if text := d.String(); text != "" {
		t.Errorf("the dead letters aren't the bad records:\n%s", text)
	}
}

// checkDeadLetter returns the record of a dead letter, and describes what is wrong with the dead letter.
func (p *Place) checkDeadLetter(letter *kgo.Record, bad map[oracle.At]string) (oracle.At, string) {
	id, identified := "", false
	if last := len(letter.Headers) - 1; last >= 0 && letter.Headers[last].Key == "standings-event-id" {
		id, identified = string(letter.Headers[last].Value), true
	}
	own := len(letter.Headers) - len(ourHeaders)
	if identified {
		own--
	}
	if own < 0 {
		return oracle.At{}, fmt.Sprintf("it has only %d headers", len(letter.Headers))
	}
	said := map[string]string{}
	for i, name := range ourHeaders {
		h := letter.Headers[own+i]
		if h.Key != name {
			return oracle.At{}, fmt.Sprintf("header %d is %q, want %q", own+i, h.Key, name)
		}
		said[strings.TrimPrefix(name, "standings-")] = string(h.Value)
	}
	partition, err1 := strconv.Atoi(said["partition"])
	offset, err2 := strconv.ParseInt(said["offset"], 10, 64)
	at := oracle.At{Partition: partition, Offset: offset}
	reason, ok := bad[at]
	record := p.original(at)
	wantID := p.Oracle(p.test).ID(at)
	switch {
	case err1 != nil || err2 != nil:
		return at, fmt.Sprintf("it says partition %q and offset %q", said["partition"], said["offset"])
	case !ok:
		return at, fmt.Sprintf("that record isn't bad; it says %s: %s", said["reason"], said["message"])
	case said["reason"] != reason:
		return at, fmt.Sprintf("it says %s (%s), want %s", said["reason"], said["message"], reason)
	case id != wantID || identified != (wantID != ""):
		return at, fmt.Sprintf("it says that its event is %q, want %q", id, wantID)
	case said["message"] == "":
		return at, "it has no message"
	case said["topic"] != p.Topic || int(letter.Partition) != partition:
		return at, fmt.Sprintf("it lies in partition %d and says %s/%d", letter.Partition, said["topic"], partition)
	case said["timestamp"] != strconv.FormatInt(record.Time, 10):
		return at, fmt.Sprintf("it says timestamp %s, want %d", said["timestamp"], record.Time)
	}
	return at, sameRecord(letter, record, own)
}

// mostHeaders is the minimum number of a record's headers that its dead letter keeps.
const mostHeaders = 100

// sameRecord compares a dead letter with the published record.
func sameRecord(letter *kgo.Record, record Published, own int) string {
	if !same(letter.Key, record.Key) {
		return fmt.Sprintf("key %.40q, want %.40q", letter.Key, record.Key)
	}
	if !same(letter.Value, record.Value) {
		return fmt.Sprintf("value %.40q (%d bytes), want %.40q (%d bytes)", letter.Value, len(letter.Value), record.Value, len(record.Value))
	}
	copied := len(record.Headers)
	if own > 0 && letter.Headers[own-1].Key == "standings-headers-dropped" && copied >= own {
		own--
		dropped, err := strconv.Atoi(string(letter.Headers[own].Value))
		if err != nil || dropped <= 0 || own < mostHeaders {
			return fmt.Sprintf("%q headers of its own are left out, and %d are there", letter.Headers[own].Value, own)
		}
		copied -= dropped
	}
	if own != copied {
		return fmt.Sprintf("%d headers of its own, want %d", own, copied)
	}
	for i, h := range record.Headers[:copied] {
		if g := letter.Headers[i]; g.Key != h.Key || !same(g.Value, h.Value) {
			return fmt.Sprintf("header %d is %q=%.40q, want %q=%.40q", i, g.Key, g.Value, h.Key, h.Value)
		}
	}
	return ""
}

// same distinguishes nil from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Counted returns the sum of the counts of all consumers that ended gracefully.
func (p *Place) Counted() Counts {
	sum := Counts{}
	for _, c := range p.Consumers() {
		if counts, ok := c.Log.Counts(); ok {
			sum = sum.Add(counts)
		}
	}
	return sum
}

// CheckCounts compares the consumers' counts with the oracle. All consumers must have ended gracefully. It
// checks that consumed = applied + dead-lettered + late + skipped + repeated + duplicates, and each number
// except repeated, which occurs only after a takeover. It also compares the last commits with the ledger.
func (p *Place) CheckCounts(t testing.TB) {
	t.Helper()
	for _, q := range p.all() {
		q.CheckCommitted(t)
	}
	for _, c := range p.Consumers() {
		n, ok := c.Log.Counts()
		if !ok {
			t.Errorf("consumer %d didn't say what it counted", c.Number)
		}
		if n.Consumed != n.Sum() {
			t.Errorf("consumer %d: consumed %d isn't the sum of what became of them, %d: %+v", c.Number, n.Consumed, n.Sum(), n)
		}
	}
	got, want := p.Counted(), p.boardsOracle(t).Counts()
	got.Consumed, got.Repeated = 0, 0
	if w := (Counts{Applied: want.Applied, DeadLettered: want.DeadLettered(), Late: want.Late, Early: want.Early, Skipped: want.Skipped, Duplicates: want.Duplicates}); got != w {
		t.Errorf("the consumers counted %+v, want %+v (%v)", got, w, want.Dead)
	}
}

// AwaitCommitted waits until everything that counts is committed to Kafka.
func (p *Place) AwaitCommitted(t testing.TB, within time.Duration) {
	t.Helper()
	Eventually(t, within, func() string {
		if committed, ends := p.Committed(t), p.Ends(t); !maps.Equal(committed, ends) {
			return fmt.Sprintf("committed is %v of %v", committed, ends)
		}
		return ""
	})
}

// CheckCommitted compares the group's offsets with the ledger, after all consumers have ended gracefully:
// events before an offset count.
func (p *Place) CheckCommitted(t testing.TB) {
	t.Helper()
	committed := p.Committed(t)
	for partition, position := range p.Ledger(t) {
		if from, err := fromOf(position); err != nil || from != committed[partition] {
			t.Errorf("partition %d: the ledger stands at %s, and %d is committed", partition, position, committed[partition])
		}
	}
}
