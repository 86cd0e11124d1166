package topic

// The records of a window. docs/final-topic.md documents them for consumers of the topic.

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
)

const (
	headerType  = "standings.final.header"
	trailerType = "standings.final.trailer"
	timeLayout  = "2006-01-02T15:04:05.000Z"
)

// records creates the records of one window.
type records struct {
	topic     string
	partition int32
	source    string
	window    *store.Window
	key       string // of the window's revision: board:period:window:revision:
	begins    []byte // the beginning of every standing's value
	fields    [][]byte
}

// windowKey is the common prefix of the keys of a window's records. It determines the partition.
func windowKey(board, period, name string) string { return board + ":" + period + ":" + name }

// revisionKey is the key of a window's revision in the topic of published windows.
func revisionKey(window string, revision int64) string {
	return window + ":" + strconv.FormatInt(revision, 10)
}

// SourceOf returns the ce_source of a consumer's records: a URI reference without a host.
func SourceOf(group, prefix string) string {
	return "/standings/" + url.PathEscape(group) + "/" + url.PathEscape(prefix)
}

func newRecords(topic string, partition int32, source string, w *store.Window) *records {
	r := &records{topic: topic, partition: partition, source: source, window: w,
		key: revisionKey(windowKey(w.Board, w.Period, w.Name), w.Revision) + ":"}
	r.begins = append([]byte(`{"type":"standing"`), r.of()...)
	for i, f := range w.Fields {
		name := quoted(f.Name)
		if i > 0 {
			name = append([]byte{','}, name...)
		}
		r.fields = append(r.fields, append(name, ':'))
	}
	return r
}

// of returns the part of a value that identifies the window's revision.
func (r *records) of() []byte {
	b := []byte(`,"board":`)
	b = append(b, quoted(r.window.Board)...)
	b = append(append(b, `,"period":`...), quoted(r.window.Period)...)
	b = append(append(b, `,"window":`...), quoted(r.window.Name)...)
	return strconv.AppendInt(append(b, `,"revision":`...), r.window.Revision, 10)
}

// quoted returns a text as JSON. It cannot fail: invalid UTF-8 is replaced.
func quoted(text string) []byte {
	b, _ := json.Marshal(text)
	return b
}

func (r *records) record(suffix string, value []byte) *kgo.Record {
	return &kgo.Record{Topic: r.topic, Partition: r.partition, Key: []byte(r.key + suffix), Value: value}
}

// event returns a record with the headers of a CloudEvent in binary mode. Its id is its key, so it stays the same
// if the window is published again.
func (r *records) event(suffix, kind string, value any) (*kgo.Record, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	e := r.record(suffix, text)
	for _, h := range [][2]string{
		{"ce_specversion", "1.0"}, {"ce_id", string(e.Key)}, {"ce_source", r.source}, {"ce_type", kind},
		{"ce_subject", windowKey(r.window.Board, r.window.Period, r.window.Name)},
		{"ce_time", r.window.SealedAt.UTC().Format(timeLayout)}, {"content-type", "application/json"},
	} {
		e.Headers = append(e.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return e, nil
}

type header struct {
	Type       string   `json:"type"`
	Board      string   `json:"board"`
	Period     string   `json:"period"`
	Window     string   `json:"window"`
	Revision   int64    `json:"revision"`
	Start      string   `json:"start"`
	End        string   `json:"end"`
	TimeZone   string   `json:"time_zone"`
	TickMS     int64    `json:"tick_ms"`
	SealedAt   string   `json:"sealed_at"`
	Members    int64    `json:"members"`
	Fields     []field  `json:"fields"`
	Incomplete []string `json:"incomplete"`
}

type field struct {
	Name   string `json:"name"`
	Min    int64  `json:"min"`
	Max    int64  `json:"max"`
	Better string `json:"better"`
}

func (r *records) header() (*kgo.Record, error) {
	w := r.window
	at := func(t time.Time) string { return t.UTC().Format(timeLayout) }
	h := header{Type: "header", Board: w.Board, Period: w.Period, Window: w.Name, Revision: w.Revision,
		Start: at(w.Start), End: at(w.End), TimeZone: w.Zone, TickMS: w.Tick.Milliseconds(), SealedAt: at(w.SealedAt),
		Members: w.Members, Fields: fieldsOf(w.Fields), Incomplete: append([]string{}, w.Incomplete...)}
	return r.event("header", headerType, &h)
}

// fieldsOf returns a board's fields for JSON; nil for the default rule.
func fieldsOf(fields []codec.Field) []field {
	var all []field
	for _, f := range fields {
		is := field{Name: f.Name, Max: f.Max, Better: "most"}
		if f.Signed {
			is.Min = -f.Max
		}
		if f.Fewest {
			is.Better = "fewest"
		}
		all = append(all, is)
	}
	return all
}

type trailer struct {
	Type     string `json:"type"`
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Revision int64  `json:"revision"`
	Members  int64  `json:"members"`
	Checksum string `json:"checksum"`
}

func (r *records) trailer(members int64, sum store.Checksum) (*kgo.Record, error) {
	w := r.window
	return r.event("trailer", trailerType, &trailer{"trailer", w.Board, w.Period, w.Name, w.Revision, members, sum.String()})
}

// standing returns a row's record. It is encoded without reflection, since there may be millions.
func (r *records) standing(row *store.Row) *kgo.Record {
	b := make([]byte, 0, len(r.begins)+len(row.Member)+160)
	b = append(b, r.begins...)
	b = strconv.AppendInt(append(b, `,"rank":`...), row.Rank, 10)
	b = append(append(b, `,"member":`...), quoted(row.Member)...)
	if r.fields == nil {
		b = strconv.AppendInt(append(b, `,"points":`...), row.Tuple[0], 10)
	} else {
		b = append(b, `,"points":null,"fields":{`...)
		for i, name := range r.fields {
			b = strconv.AppendInt(append(b, name...), row.Tuple[i], 10)
		}
		b = append(b, '}')
	}
	b = append(b, `,"reached_at":"`...)
	b = time.UnixMilli(row.ReachedAt).UTC().AppendFormat(b, timeLayout)
	b = append(b, `","score":`...)
	b = append(appendScore(b, row.Score), '}')
	return r.record(strconv.FormatInt(row.Rank, 10), b)
}

// appendScore appends a double so that parsing returns the same bits. Only -0 becomes 0, as in checksums.
func appendScore(b []byte, score float64) []byte {
	if score == 0 {
		return append(b, '0')
	}
	format := byte('f')
	if abs := math.Abs(score); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	return strconv.AppendFloat(b, score, format, -1, 64)
}
