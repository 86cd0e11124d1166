package topic

// What is published: a compacted topic of one partition beside the final one, with a record a
// window's revision, of the same transaction.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/retry"
)

// PublishedSuffix is what the name of the topic of what is published has behind the final topic's.
const PublishedSuffix = ".done"

// published is a window's revision in the topic.
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

// done is the record of a window that is published.
func (r *records) done(p published) (*kgo.Record, error) {
	w := r.window
	value, err := json.Marshal(line{w.Board, w.Period, w.Name, w.Revision, time.UnixMilli(p.sealedAt).UTC().Format(timeLayout), p.members, p.checksum.String()})
	return &kgo.Record{Topic: r.topic + PublishedSuffix, Key: []byte(r.key[:len(r.key)-1]), Value: value}, err
}

// errNotALine: a record of the topic isn't this program's.
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

// readPublished reads the topic from its start to its end as it is found, and returns that end. Where the last record of a key isn't ours
// that is an error: without it a window could be published again, as the same revision and with other
// standings. A tombstone for the key ends it.
func readPublished(ctx context.Context, client *kafka.Client, topic string) (all map[string]published, end int64, err error) {
	logs, err := kafkaconn.AllLogs(ctx, client, topic, 1)
	if err != nil {
		return nil, 0, fmt.Errorf("look what is published: %w", err)
	}
	r := &lines{
		fetcher: &fetch.Fetcher{Transport: client.Transport, Addr: client.Addr, ClientID: kafkaconn.ClientID, Topic: topic},
		records: &recordbatch.Reader{}, all: map[string]published{}, bad: map[string]error{},
		idle: retry.Policy{First: 10 * time.Millisecond, Longest: fetch.DefaultMaxWait}.Start(),
	}
	defer r.close(ctx)
	for at := logs[0].Start; at < logs[0].End; {
		if at, err = r.response(ctx, at); err != nil {
			return nil, 0, fmt.Errorf("look what is published: read %s at %d: %w", topic, at, err)
		}
	}
	for key, err := range r.bad {
		return nil, 0, fmt.Errorf("topic %s, %d keys, of which one is %.100q: %w; write a tombstone for it", topic, len(r.bad), key, err)
	}
	return r.all, logs[0].End, nil
}

type lines struct {
	fetcher *fetch.Fetcher
	records *recordbatch.Reader
	idle    *retry.Backoff
	all     map[string]published
	bad     map[string]error // why the last record of a key isn't ours
}

// close is bounded by what a call that was given up may still take.
func (r *lines) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.DefaultMaxWait+fetch.Grace)
	defer cancel()
	_ = r.fetcher.Drop(ctx)
	r.records.Close()
}

// response takes the records of one response, and returns where the next begins.
func (r *lines) response(ctx context.Context, at int64) (next int64, err error) {
	answer, err := r.fetcher.Fetch(ctx, at)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		return at, err
	}
	defer answer.Release()
	if !answer.Answered() { // throttled: the next fetch waits
		return at, nil
	}
	answer.Read(r.records, at)
	for {
		rec, err := r.records.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return at, err
		}
		if rec.Whole != nil {
			return rec.Offset, fmt.Errorf("%w: %s", errNotALine, rec.TooLarge("this reader"))
		}
		if rec.Oversize > 0 { // it has no key here
			return rec.Offset, fmt.Errorf("%w: it has %d bytes", errNotALine, rec.Oversize)
		}
		r.take(rec)
	}
	if next = r.records.Position(); next > at {
		r.idle.Reset()
		return next, nil
	}
	return next, r.idle.Next(ctx)
}

func (r *lines) take(rec *recordbatch.Record) {
	key := string(rec.Key)
	delete(r.all, key)
	delete(r.bad, key)
	if rec.Value == nil { // somebody wants it published again
		return
	}
	p, err := parseLine(rec.Key, rec.Value)
	if err != nil {
		r.bad[key] = fmt.Errorf("offset %d: %w", rec.Offset, err)
		return
	}
	r.all[key] = p
}
