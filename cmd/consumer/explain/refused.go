package explain

// This file finds events that a script refused (overflow, window_limit). Which events are refused depends
// on the order in which they were applied, so the log alone cannot tell; their dead letters do. The same
// applies to record batches that a consumer had too little memory to read, which depends on its
// fold_memory.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// refusal is the reason why an event was refused.
type refusal struct{ Reason, Message string }

// refusals finds the member's refused events. It returns the dead-letter topics that this user may not
// read.
func (l *logs) refusals(ctx context.Context, all []*source, own *judge) (unread []string, err error) {
	of := map[ledger.Partition]*source{}
	var stretches []*scan.Stretch
	for _, some := range byTopic(all) {
		for _, s := range some {
			of[s.Partition] = s
		}
		topic := event.DeadLetterTopic(some[0].Topic)
		n, err := l.readable(ctx, topic)
		switch {
		case errors.Is(err, kafkaconn.ErrNoTopic): // no event was ever dead-lettered
			continue
		case errors.As(err, new(*kafkaconn.RightsError)), errors.Is(err, kafka.TopicAuthorizationFailed):
			unread = append(unread, topic)
			continue
		}
		if err != nil {
			return nil, l.explain(ctx, err, topic)
		}
		found, err := kafkaconn.AllLogs(ctx, l.client, topic, n)
		if err != nil {
			return nil, l.explain(ctx, err, topic)
		}
		for p, log := range found {
			stretches = append(stretches, &scan.Stretch{Client: l.client, Topic: topic, Partition: p, From: log.Start, End: log.End, MaxRecord: largestRecord})
		}
	}
	err = l.reading.Each(ctx, "reading dead letters", stretches, false, func(_ *scan.Stretch, rec *recordbatch.Record) error {
		if letter, ok := refused(rec, own); ok {
			if s := of[ledger.Partition{Topic: letter.Topic, Number: letter.Partition}]; s != nil {
				s.refuse(&letter)
			}
		}
		return nil
	})
	for _, s := range of {
		s.passed = merged(s.passed)
	}
	return unread, err
}

// passed holds the offsets [first, last] of a batch that a consumer could not read.
type passed struct {
	first, last int64
	refusal
}

// refuse records a dead letter of the partition.
func (s *source) refuse(letter *deadletter.Origin) {
	why := refusal{letter.Reason, letter.Message}
	if event.Reason(letter.Reason) == event.TooLarge {
		s.passed = append(s.passed, passed{letter.Offset, letter.Last, why})
		return
	}
	if s.refused == nil {
		s.refused = map[int64]refusal{}
	}
	s.refused[letter.Offset] = why
}

// merged returns the ranges in order, with overlapping ones merged.
func merged(all []passed) []passed {
	slices.SortFunc(all, func(a, b passed) int { return cmp.Compare(a.first, b.first) })
	var kept []passed
	for _, p := range all {
		if n := len(kept); n > 0 && p.first <= kept[n-1].last {
			kept[n-1].last = max(kept[n-1].last, p.last)
		} else {
			kept = append(kept, p)
		}
	}
	return kept
}

// refusedAs returns why the event at an offset was refused, if it was.
func (s *source) refusedAs(offset int64) (why refusal, ok bool) {
	if why, ok = s.refused[offset]; ok {
		return why, true
	}
	i, found := slices.BinarySearchFunc(s.passed, offset, func(p passed, offset int64) int { return cmp.Compare(p.first, offset) })
	if !found {
		i--
	}
	if i >= 0 && offset <= s.passed[i].last {
		return s.passed[i].refusal, true
	}
	return refusal{}, false
}

// refused parses the dead letter of a refused event. It returns false if the event belongs to another
// member for certain.
func refused(rec *recordbatch.Record, own *judge) (deadletter.Origin, bool) {
	var headers []kafka.Header
	rec.EachHeader(func(key, value []byte) { headers = append(headers, kafka.Header{Key: string(key), Value: value}) })
	of, original, err := deadletter.Read(headers)
	if err != nil || !slices.Contains([]event.Reason{event.Overflow, event.WindowLimit, event.TooLarge}, event.Reason(of.Reason)) {
		return of, false
	}
	var h event.Headers
	for _, header := range original {
		h.Note([]byte(header.Key), header.Value)
	}
	var e event.Event
	bad := rec.Value == nil || own.decoder.DecodeWith(&h, rec.Value, of.Time, &e) != nil
	return of, bad || string(e.User) == own.member
}
