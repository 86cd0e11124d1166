package topic

// The record of published windows: a compacted topic with one partition next to the final topic. It has one record
// per published revision, written in the same transaction.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// PublishedSuffix is appended to the final topic's name to get the name of the topic that records published
// windows.
const PublishedSuffix = ".done"

// published is a revision in that topic.
type published struct {
	sealedAt int64 // Unix ms
	members  int64
	checksum store.Checksum
}

// line is the value of its record.
type line struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Revision int64  `json:"revision"`
	SealedAt string `json:"sealed_at"`
	Members  int64  `json:"members"`
	Checksum string `json:"checksum"`
}

// done returns the record of a published window.
func (r *records) done(p published) (*kgo.Record, error) {
	w := r.window
	value, err := json.Marshal(line{w.Board, w.Period, w.Name, w.Revision, time.UnixMilli(p.sealedAt).UTC().Format(timeLayout), p.members, p.checksum.String()})
	return &kgo.Record{Topic: r.topic + PublishedSuffix, Key: []byte(r.key[:len(r.key)-1]), Value: value}, err
}

// errNotALine reports a record that this program did not write.
var errNotALine = errors.New("isn't what is published")

func parseLine(key, value []byte) (published, error) {
	var l line
	if err := json.Unmarshal(value, &l); err != nil {
		return published{}, fmt.Errorf("%w: %w", errNotALine, err)
	}
	sealed, err := time.Parse(time.RFC3339, l.SealedAt)
	sum, bad := strconv.ParseUint(l.Checksum, 16, 64)
	if is := revisionKey(windowKey(l.Board, l.Period, l.Window), l.Revision); err != nil || bad != nil || is != string(key) || l.Revision < 1 || l.Members < 0 {
		return published{}, fmt.Errorf("%w: the key %.100q and the value %.300q", errNotALine, key, value)
	}
	return published{sealed.UnixMilli(), l.Members, store.Checksum(sum)}, nil
}

// readPublished reads the topic from its start to its current end, and returns that end. If the last record of a
// key was not written by this program, that is an error: without it a window could be published again, as the same
// revision with other standings. A tombstone for the key resolves the error.
func readPublished(ctx context.Context, client *kafka.Client, topic string) (all map[string]published, end int64, err error) {
	logs, err := kafkaconn.AllLogs(ctx, client, topic, 1)
	if err != nil {
		return nil, 0, fmt.Errorf("look what is published: %w", err)
	}
	r := &lines{all: map[string]published{}, bad: map[string]error{}}
	tail := fetch.NewTail(client, topic, 0)
	defer tail.Close(ctx)
	for at := logs[0].Start; at < logs[0].End; {
		if at, err = tail.Next(ctx, at, r.take); err != nil {
			return nil, 0, fmt.Errorf("look what is published: %w", err)
		}
	}
	for key, err := range r.bad {
		return nil, 0, fmt.Errorf("topic %s, %d keys, of which one is %.100q: %w; write a tombstone for it", topic, len(r.bad), key, err)
	}
	return r.all, logs[0].End, nil
}

// lines are the last records of the keys read so far.
type lines struct {
	all map[string]published
	bad map[string]error // why the last record of a key is invalid
}

func (r *lines) take(rec *recordbatch.Record) error {
	if rec.Whole != nil {
		return fmt.Errorf("%w: %s", errNotALine, rec.TooLarge("this reader"))
	}
	if rec.Oversize > 0 { // the record's key is not read
		return fmt.Errorf("%w: it has %d bytes", errNotALine, rec.Oversize)
	}
	key := string(rec.Key)
	delete(r.all, key)
	delete(r.bad, key)
	if rec.Value == nil { // an operator requests that it be published again
		return nil
	}
	p, err := parseLine(rec.Key, rec.Value)
	if err != nil {
		r.bad[key] = fmt.Errorf("offset %d: %w", rec.Offset, err)
		return nil
	}
	r.all[key] = p
	return nil
}
