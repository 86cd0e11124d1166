package deadletters

// This file parses dead letters: the original record, and the headers that hold its position and why it
// could not be counted.

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// Position is the position of a record in Kafka.
type Position struct {
	Topic     string
	Partition int
	Offset    int64
}

func (p Position) String() string { return fmt.Sprintf("%s/%d@%d", p.Topic, p.Partition, p.Offset) }

// partition returns the position's partition.
func (p Position) partition() ledger.Partition {
	return ledger.Partition{Topic: p.Topic, Number: p.Partition}
}

// parsePosition parses topic/partition@offset.
func parsePosition(text string) (Position, error) {
	field, number, _ := strings.Cut(text, "@")
	p, wrong := ledger.ParsePartition(field)
	offset, err := strconv.ParseInt(number, 10, 64)
	if wrong != nil || err != nil || offset < 0 || config.CheckTopic(p.Topic) != nil {
		return Position{}, cli.Usagef("%q must be topic/partition@offset, such as points/3@480", text)
	}
	return Position{p.Topic, p.Number, offset}, nil
}

// deadLetter is a record of a dead-letter topic. Its bytes belong to the record until keep is called.
type deadLetter struct {
	at      Position // in the dead-letter topic
	written int64    // Unix ms

	deadletter.Origin
	source Position // the original's position

	key     []byte
	headers []kafka.Header // the original's
	value   []byte         // nil if the dead letter was written without the value

	// fault explains why the record is not a dead letter. If set, only at, written, and the record's own
	// key, headers and value are set.
	fault string
}

// readRecord parses a record. It never fails: if the record is not a dead letter, fault explains why.
func readRecord(topic string, partition int, rec *recordbatch.Record) *deadLetter {
	l := &deadLetter{at: Position{topic, partition, rec.Offset}, written: rec.Time, key: rec.Key, value: rec.Value}
	rec.EachHeader(func(key, value []byte) {
		l.headers = append(l.headers, kafka.Header{Key: string(key), Value: value})
	})
	if rec.Whole != nil {
		l.fault = rec.TooLarge("this command")
		return l
	}
	if rec.Oversize > 0 {
		l.fault = fmt.Sprintf("the record has %d bytes, more than is read", rec.Oversize)
		return l
	}
	of, headers, err := deadletter.Read(l.headers)
	if err == nil && config.CheckTopic(of.Topic) != nil {
		err = errors.New("its " + deadletter.HeaderTopic + " isn't one")
	}
	if err != nil {
		l.fault = err.Error()
		return l
	}
	l.Origin, l.headers, l.source = of, headers, Position{of.Topic, of.Partition, of.Offset}
	return l
}

// batch reports whether the dead letter stands for all records of a batch that was too large for the
// memory.
func (l *deadLetter) batch() bool {
	return l.fault == "" && l.Reason == string(event.TooLarge) && l.value == nil
}

// of reports whether the dead letter belongs to the original at a position.
func (l *deadLetter) of(at Position) bool {
	return l.fault == "" && l.source.partition() == at.partition() && at.Offset >= l.Offset && at.Offset <= l.Last
}

// events returns the maximum number of originals that the dead letter stands for; 1 if it is not a dead
// letter.
func (l *deadLetter) events() int64 {
	if l.fault != "" {
		return 1
	}
	return l.Last - l.Offset + 1
}

// original returns the position of the originals: points/3@480, or points/3@480 to 491.
func (l *deadLetter) original() string {
	if l.Last == l.Offset {
		return l.source.String()
	}
	return fmt.Sprintf("%s to %d", l.source, l.Last)
}

// keep copies the dead letter's bytes, so that they no longer belong to the record.
func (l *deadLetter) keep() {
	l.key, l.value = bytes.Clone(l.key), bytes.Clone(l.value)
	for i := range l.headers {
		l.headers[i].Value = bytes.Clone(l.headers[i].Value)
	}
}

// originals is a set of positions: a bitmap of 64 offsets by the position of the first of them.
type originals map[Position]uint64

// add adds a position and reports whether it is new.
func (o originals) add(p Position) bool {
	word, bit := bitOf(p)
	isNew := o[word]&bit == 0
	o[word] |= bit
	return isNew
}

func (o originals) has(p Position) bool {
	word, bit := bitOf(p)
	return o[word]&bit != 0
}

func bitOf(p Position) (word Position, bit uint64) {
	bit = 1 << (p.Offset % 64)
	p.Offset -= p.Offset % 64
	return p, bit
}
