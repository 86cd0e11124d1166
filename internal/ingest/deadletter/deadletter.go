// Package deadletter writes the records that can't count to a topic beside their own, as they
// came, with headers that say why and where from.
//
// The promise: once or more, never none. All dead letters of a batch are acknowledged by all
// replicas before its first piece is applied; a takeover writes them again.
//
//	          ┌── Outbox, one a partition: what couldn't be written, the quota ──┐
//	reader  ──┼─▶ Writer, one a flow: gathers, writes ──────────────────────────▶│ <topic>.dlq
//	sweeper ──┼─▶ Writer, for members who are refused ──────────────────────────▶│
//	worker  ──┼─▶ Retry: one dead letter, before the next flow ─────────────────▶│
//	          └──────────────────────────────────────────────────────────────────┘
//
// Written is what is known to be acknowledged, so that a flow that reads the same records again
// writes none of them again. Topics makes the topics, like their sources.
package deadletter

import (
	"errors"
	"math"
	"regexp"
	"strconv"

	"github.com/segmentio/kafka-go"
)

// The headers of a dead letter, behind those of its original, in this order. An original may
// have had headers of the same names: the last ones are the dead letter's.
const (
	HeaderReason    = "standings-reason"
	HeaderMessage   = "standings-message"
	HeaderTopic     = "standings-topic"
	HeaderPartition = "standings-partition"
	HeaderOffset    = "standings-offset"
	HeaderTimestamp = "standings-timestamp" // Unix ms; none at or below 0
	HeaderEventID   = "standings-event-id"  // where it is known
	// HeaderLastOffset is there if the dead letter is for all records of a batch that took too
	// much memory: it is the batch's last offset. None of their ids is known.
	HeaderLastOffset = "standings-last-offset"
	// HeaderDropped comes before those where headers of the original were left out, and says
	// how many.
	HeaderDropped = "standings-headers-dropped"
)

var always = [...]string{HeaderReason, HeaderMessage, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTimestamp}

// Origin is what the headers of a dead letter say of its original.
type Origin struct {
	Reason    string
	Message   string
	Topic     string // not checked to be the name of one
	Partition int
	Offset    int64
	Time      int64  // Unix ms; none at or below 0
	EventID   string // empty is none
	Last      int64  // the last offset, if it is for the records of a whole batch; else Offset
}

// append appends the headers. id is that of the event, nil where it isn't known.
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

// reasonForm is what a reason looks like, those of later versions too: counts are kept by
// reason, so that not any text can be one.
var reasonForm = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

// Read takes the headers of a dead letter apart: what they say of the original, and the
// original's own. The error says why they aren't those of a dead letter.
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
