package recordbatch

// Messages of magic 0 and 1 for tests, encoded by franz-go, and its reading of them.

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// message is one of the old formats, with its offset as it stands in the bytes.
type message struct {
	offset     int64
	time       int64 // of magic 1
	key, value []byte
	attrs      int8
}

func (m message) encode(magic byte) []byte {
	var b []byte
	if magic == 0 {
		k := kmsg.MessageV0{Offset: m.offset, Attributes: m.attrs, Key: m.key, Value: m.value}
		k.MessageSize = int32(len(k.AppendTo(nil)) - prefixSize)
		b = k.AppendTo(nil)
	} else {
		k := kmsg.MessageV1{Offset: m.offset, Magic: int8(magic), Attributes: m.attrs, Timestamp: m.time, Key: m.key, Value: m.value}
		k.MessageSize = int32(len(k.AppendTo(nil)) - prefixSize)
		b = k.AppendTo(nil)
	}
	return seal(b)
}

// set is what is produced together: messages, or a wrapper that holds them. The
// records have absolute offsets.
type set struct {
	magic   byte
	attrs   int8 // codec and LogAppendTime
	time    int64
	records []record
	last    int64  // the wrapper's offset, where it isn't the last record's
	inner   []byte // instead of records
	payload []byte // instead of what is compressed
}

func (s set) encode() []byte {
	inner := s.inner
	first, last := int64(0), s.last
	if n := len(s.records); n > 0 {
		first = s.records[0].offset
		if last == 0 {
			last = s.records[n-1].offset
		}
	}
	for _, r := range s.records {
		m := message{offset: r.offset, time: r.time, key: r.key, value: r.value}
		if s.attrs&attrCodec != 0 && s.magic == 1 {
			m.offset -= first
		} else if s.attrs&attrCodec == 0 {
			m.attrs = s.attrs
		}
		inner = append(inner, m.encode(s.magic)...)
	}
	if s.attrs&attrCodec == 0 {
		return inner
	}
	if s.payload == nil {
		s.payload = squeeze(int(s.attrs&attrCodec), inner)
	}
	return message{offset: last, time: s.time, attrs: s.attrs, value: s.payload}.encode(s.magic)
}

// seen is what a consumer sees of the set's records.
func (s set) seen() []record {
	var all []record
	for _, r := range s.records {
		switch {
		case s.magic == 0:
			r.time = noTime
		case s.attrs&attrLogAppendTime != 0 && s.attrs&attrCodec != 0:
			r.time = s.time
		}
		all = append(all, r)
	}
	return all
}

// old is a set of n small records from an offset on.
func old(magic byte, base int64, n int, attrs int8) set {
	s := set{magic: magic, attrs: attrs, time: 1_500_000_000_000}
	for i := range n {
		s.records = append(s.records, record{
			offset: base + int64(i), time: 1_400_000_000_000 + int64(i),
			key: []byte{byte(i)}, value: []byte(`{"user_id":"u42","points":25}`),
		})
	}
	return s
}

func joinSets(sets ...set) (in []byte, all []record) {
	for _, s := range sets {
		in = append(in, s.encode()...)
		all = append(all, s.seen()...)
	}
	return in, all
}

// brokenLZ4 is one frame as Kafka's clients wrote it into magic 0: the sum in its
// head is taken over the magic number too (KAFKA-3160).
func brokenLZ4(raw []byte) []byte {
	frame := bytes.Clone(squeeze(codecLZ4, raw))
	end := lz4Head(frame[4])
	frame[end-1] = byte(xxh32(frame[:end-1]) >> 8)
	return frame
}
