// Package deadletter writes records that cannot be counted to a dead-letter topic, unchanged, with headers that
// give the reason and the source.
//
// Delivery is at least once. All replicas acknowledge all dead letters of a batch before the batch's first
// piece is applied. After a takeover the new owner writes them again.
//
//	          ┌── Outbox, one per partition: the unwritten dead letter, the quota ──┐
//	reader  ──┼─▶ Writer, one per flow: gathers, writes ───────────────────────────▶│ <topic>.dlq
//	sweeper ──┼─▶ Writer, for refused members ─────────────────────────────────────▶│
//	worker  ──┼─▶ Retry: one dead letter, before the next flow ────────────────────▶│
//	          └─────────────────────────────────────────────────────────────────────┘
//
// Written records which dead letters are acknowledged, so that a flow that reads the same records again does
// not write them again. Topics creates the dead-letter topics, with settings copied from their sources.
package deadletter

import (
	"errors"
	"math"
	"regexp"
	"strconv"

	"github.com/segmentio/kafka-go"
)

// The headers of a dead letter. They follow the original's headers, in this order. If an original has headers
// with the same names, the last ones belong to the dead letter.
const (
	HeaderReason    = "standings-reason"
	HeaderMessage   = "standings-message"
	HeaderTopic     = "standings-topic"
	HeaderPartition = "standings-partition"
	HeaderOffset    = "standings-offset"
	HeaderTimestamp = "standings-timestamp" // Unix ms; 0 or less: no time
	HeaderEventID   = "standings-event-id"  // only if it is known
	// HeaderLastOffset is present if the dead letter stands for all records of a batch that needed too much
	// memory: it is the batch's last offset. The event ids of these records are unknown.
	HeaderLastOffset = "standings-last-offset"
	// HeaderDropped precedes the other headers if some of the original's headers were left out. Its value is
	// their number.
	HeaderDropped = "standings-headers-dropped"
)

var always = [...]string{HeaderReason, HeaderMessage, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTimestamp}

// Origin is the description of the original in a dead letter's headers.
type Origin struct {
	Reason    string
	Message   string
	Topic     string // not checked to be a valid topic name
	Partition int
	Offset    int64
	Time      int64  // Unix ms; 0 or less: no time
	EventID   string // empty: none
	Last      int64  // the batch's last offset, if the dead letter stands for a whole batch; else Offset
}

// append appends the headers. id is the event's id, nil if unknown.
func (o *Origin) append(headers []kafka.Header, id []byte) []kafka.Header {
	for i, value := range [len(always)]string{
		o.Reason, o.Message, o.Topic, strconv.Itoa(o.Partition), strconv.FormatInt(o.Offset, 10), strconv.FormatInt(o.Time, 10),
	} {
		headers = append(headers, kafka.Header{Key: always[i], Value: []byte(value)})
	}
	if id != nil {
		headers = append(headers, kafka.Header{Key: HeaderEventID, Value: id})
	}
	if o.Last > o.Offset {
		headers = append(headers, kafka.Header{Key: HeaderLastOffset, Value: strconv.AppendInt(nil, o.Last, 10)})
	}
	return headers
}

// reasonForm is the form of a reason, also in later versions. Dead letters are counted by reason, so a reason
// cannot be arbitrary text.
var reasonForm = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

// Read splits the headers of a dead letter into the description of the original and the original's own headers.
// It returns an error if the headers are not those of a dead letter.
func Read(headers []kafka.Header) (o Origin, original []kafka.Header, err error) {
	end, last := len(headers), ""
	if end > 0 && headers[end-1].Key == HeaderLastOffset {
		last = string(headers[end-1].Value)
		end--
	}
	if end > 0 && headers[end-1].Key == HeaderEventID {
		o.EventID = string(headers[end-1].Value)
		end--
	}
	begin := end - len(always)
	if begin < 0 {
		return Origin{}, headers, errNoHeaders
	}
	var values [len(always)]string
	for i, name := range always {
		h := headers[begin+i]
		if h.Key != name {
			return Origin{}, headers, errNoHeaders
		}
		values[i] = string(h.Value)
	}
	partition, badPartition := strconv.ParseInt(values[3], 10, 32)
	offset, badOffset := strconv.ParseInt(values[4], 10, 64)
	at, badTime := strconv.ParseInt(values[5], 10, 64)
	o.Last = offset
	var badLast error
	if last != "" {
		o.Last, badLast = strconv.ParseInt(last, 10, 64)
	}
	wrong := ""
	switch {
	case !reasonForm.MatchString(values[0]):
		wrong = HeaderReason
	case badPartition != nil || partition < 0:
		wrong = HeaderPartition
	case badOffset != nil || offset < 0:
		wrong = HeaderOffset
	case badTime != nil:
		wrong = HeaderTimestamp
	case badLast != nil || o.Last < offset || o.Last-offset > math.MaxInt32: // as in a record batch
		wrong = HeaderLastOffset
	}
	if wrong != "" {
		return Origin{}, headers, errors.New("its " + wrong + " isn't one")
	}
	o.Reason, o.Message, o.Topic, o.Partition, o.Offset, o.Time = values[0], values[1], values[2], int(partition), offset, at
	return o, headers[:begin:begin], nil
}

var errNoHeaders = errors.New("it hasn't the headers of a dead letter")
