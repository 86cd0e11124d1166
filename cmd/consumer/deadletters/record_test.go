package deadletters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// headersOf returns the encoded headers of a record.
func headersOf(headers []kafka.Header) (raw []byte, n int) {
	put := func(b []byte) {
		if b == nil {
			raw = append(raw, 1) // zigzag encoding of -1
			return
		}
		for u := uint64(len(b)) << 1; ; u >>= 7 {
			if u < 0x80 {
				raw = append(raw, byte(u))
				break
			}
			raw = append(raw, byte(u)|0x80)
		}
		raw = append(raw, b...)
	}
	for _, h := range headers {
		put([]byte(h.Key))
		put(h.Value)
	}
	return raw, len(headers)
}

func header(key, value string) kafka.Header { return kafka.Header{Key: key, Value: []byte(value)} }

// recordOf returns a record of points.dlq/3 as a consumer writes it.
func recordOf(at Position, ms int64, reason, message string, key, value []byte, own ...kafka.Header) *recordbatch.Record {
	all := append(slices.Clone(own), header("standings-reason", reason), header("standings-message", message), header("standings-topic", at.Topic),
		header("standings-partition", strconv.Itoa(at.Partition)), header("standings-offset", strconv.FormatInt(at.Offset, 10)),
		header("standings-timestamp", strconv.FormatInt(ms, 10)))
	rec := &recordbatch.Record{Offset: 17, Time: 1795248930123, Key: key, Value: value}
	rec.Headers, rec.HeaderCount = headersOf(all)
	return rec
}

var someBytes = rapid.OneOf(
	rapid.Just[[]byte](nil),
	rapid.SliceOfN(rapid.Byte(), 0, 12),
	rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
	rapid.Map(rapid.SampledFrom([]string{`{}`, "{\r\n \"a\" : 1.0,\n\"a\":\"x\\n\"}\n", `{"a":[1e400,"\ud83d\ude00"]}`, `{"a":"\ud800"}`, `[1]`, `"a"`, `{"a":`,
		strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), "", " ", "\ufeff{}"}), func(s string) []byte { return []byte(s) }),
)

// If a dead letter is exported and published unchanged, the record equals the original.
func TestAnExportedDeadLetterIsReadBackAsTheRecordThatItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var own []kafka.Header
		for range rapid.IntRange(0, 4).Draw(t, "headers") {
			key := rapid.SampledFrom([]string{"ce_id", "content-type", "standings-reason", "", "\xff", "tab\t"}).Draw(t, "key of a header")
			own = append(own, kafka.Header{Key: key, Value: someBytes.Draw(t, "its value")})
		}
		key, value := someBytes.Draw(t, "key"), someBytes.Draw(t, "value")
		ms := rapid.SampledFrom([]int64{-1, 0, 1, 1795248930123}).Draw(t, "time")
		at := Position{"points", rapid.IntRange(0, 9).Draw(t, "partition"), rapid.Int64Range(0, 1<<62).Draw(t, "offset")}
		l := readRecord("points.dlq", 3, recordOf(at, ms, "invalid", "it's \"so\"\x00\xff", key, value, own...))
		require.Empty(t, l.fault)
		require.Equal(t, at, l.source)
		require.Equal(t, ms, l.Time)
		line := l.appendLine(nil, true)
		if bytes.ContainsAny(line, "\n\r") || !json.Valid(line) && !bytes.Contains(line, []byte("[1e400")) && len(line) < 10_000 {
			t.Fatalf("not a line of JSON: %s", line)
		}
		m, err := ParseLine(line)
		if value == nil {
			require.ErrorContains(t, err, "it has no value; the original is at "+at.String())
			return
		}
		require.NoError(t, err, "%s", line)
		wantTime := time.Time{}
		if ms > 0 {
			wantTime = time.UnixMilli(ms)
		}
		if m.String() != at.String() || !m.At.Equal(wantTime) || !same(m.Key, key) || len(m.Headers) != len(own) {
			t.Fatalf("%s: %+v", line, m)
		}
		for i, h := range m.Headers {
			if h.Key != own[i].Key || !same(h.Value, own[i].Value) {
				t.Fatalf("header %d is %+v, was %+v", i, h, own[i])
			}
		}
		// JSON ignores line breaks outside strings, and surrounding space.
		was := bytes.TrimSpace(value)
		if !m.IsText && !bytes.Equal(bytes.Map(withoutBreaks, was), m.Value) || m.IsText && !bytes.Equal(m.Value, value) {
			t.Fatalf("value %q, was %q", m.Value, value)
		}
	})
}

func withoutBreaks(r rune) rune {
	if r == '\n' || r == '\r' {
		return ' '
	}
	return r
}

// same distinguishes nil from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func TestARecordWithoutTheHeadersOfADeadLetterIsShownAsNone(t *testing.T) {
	at := Position{"points", 3, 480}
	good := func() []kafka.Header {
		l := recordOf(at, 5, "invalid", "why", nil, []byte("{}"))
		var all []kafka.Header
		l.EachHeader(func(k, v []byte) { all = append(all, kafka.Header{Key: string(k), Value: v}) })
		return all
	}
	for name, change := range map[string]func([]kafka.Header) []kafka.Header{
		"it hasn't the headers":             func([]kafka.Header) []kafka.Header { return nil },
		"it hasn't the headers of":          func(h []kafka.Header) []kafka.Header { return h[1:] },
		"it hasn't the headers of a":        func(h []kafka.Header) []kafka.Header { return append(h, header("other", "")) },
		"it hasn't the headers of a dead":   func(h []kafka.Header) []kafka.Header { h[0], h[1] = h[1], h[0]; return h },
		"its standings-reason isn't one":    func(h []kafka.Header) []kafka.Header { h[0].Value = []byte("Any text"); return h },
		"its standings-topic isn't":         func(h []kafka.Header) []kafka.Header { h[2].Value = nil; return h },
		"its standings-partition isn't one": func(h []kafka.Header) []kafka.Header { h[3].Value = []byte("-1"); return h },
		"its standings-offset isn't one":    func(h []kafka.Header) []kafka.Header { h[4].Value = []byte("99999999999999999999"); return h },
		"its standings-timestamp isn't one": func(h []kafka.Header) []kafka.Header { h[5].Value = []byte("now"); return h },
	} {
		rec := recordOf(at, 5, "invalid", "why", []byte("k"), []byte("v"))
		rec.Headers, rec.HeaderCount = headersOf(change(good()))
		l := readRecord("points.dlq", 3, rec)
		if !strings.HasPrefix(l.fault, name) || l.source != (Position{}) || string(l.value) != "v" || string(l.key) != "k" {
			t.Errorf("%s: %+v", name, l)
		}
		if !json.Valid(l.asJSON()) {
			t.Errorf("%s", l.asJSON())
		}
	}
	rec := recordOf(at, 5, "invalid", "why", nil, nil)
	rec.Headers, rec.HeaderCount = headersOf(append(good(), header("standings-event-id", "e1")))
	l := readRecord("points.dlq", 3, rec)
	require.Empty(t, l.fault)
	require.Equal(t, "e1", l.EventID)
	require.Empty(t, l.headers)
	// A dead letter whose copy was dead-lettered again has the headers of both.
	l = readRecord("points.dlq", 3, recordOf(at, 5, "invalid", "why", nil, nil, good()...))
	require.Empty(t, l.fault)
	require.Len(t, l.headers, 6)
	l = readRecord("points.dlq", 3, &recordbatch.Record{Offset: 1, Oversize: 1 << 30})
	require.Equal(t, "the record has 1073741824 bytes, more than is read", l.fault)
}

func TestPositionsAreReadAsTheyAreShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Position{rapid.StringMatching(`[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,20}`).Draw(t, "topic"), rapid.IntRange(0, 1<<31-1).Draw(t, "partition"), rapid.Int64Min(0).Draw(t, "offset")}
		got, err := parsePosition(want.String())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	for _, text := range []string{"", "points", "points/3", "points@3", "/3@4", "points/3@", "points/@4", "points/-1@4", "points/3@-4", "points/3@4@5", "a b/3@4"} {
		_, err := parsePosition(text)
		require.Error(t, err, "%q", text)
	}
}

// The times are those of the dead letters, each original counts once, and other records are counted
// separately.
func TestDeadLettersAreCountedAndListed(t *testing.T) {
	counted := &counts{seen: originals{}}
	three := &firstOnes{limit: 3, seen: originals{}, held: map[Position]*listed{}}
	five := &firstOnes{limit: 5, seen: originals{}, held: map[Position]*listed{}}
	for i, r := range []struct {
		at     Position
		reason string
	}{
		{Position{"points", 3, 480}, "invalid"}, {Position{"points", 3, 481}, "bad_time"}, {Position{"points", 3, 480}, "invalid"},
		{Position{"points", 3, 490}, "invalid"}, {Position{}, ""}, {Position{"points", 3, 480}, "unknown_board"}, {Position{"points", 2, 480}, "invalid"},
	} {
		rec := recordOf(r.at, 5, r.reason, "user_id: \x1b[31mis missing, and so is a great deal more than fits", fmt.Appendf(nil, "k%d\x00", i), nil)
		if r.reason == "" {
			rec.HeaderCount = 0
		}
		rec.Offset, rec.Time = int64(100+i), 1795248930000+int64(i)*1000
		for _, to := range []listing{counted, three, five} {
			to.add(readRecord("points.dlq", 3, rec))
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	var text, countsJSON, listJSON bytes.Buffer
	require.NoError(t, writeListing(&text, counted, []string{"other"}, berlin))
	require.NoError(t, cli.WriteJSON(&countsJSON, counted.report([]string{"other"})))
	require.NoError(t, cli.WriteJSON(&listJSON, five.report([]string{})))
	text.WriteString("---\n")
	require.NoError(t, writeListing(&text, three, nil, time.UTC))
	golden(t, "deadletters.txt", text.Bytes())
	golden(t, "counts.json", countsJSON.Bytes())
	golden(t, "letters.json", listJSON.Bytes())
}

func TestADeadLetterIsShownWithoutWritingToTheTerminal(t *testing.T) {
	at := Position{"points", 3, 480}
	var text, asJSON bytes.Buffer
	for _, l := range []*deadLetter{
		readRecord("points.dlq", 3, recordOf(at, 1795248930123, "invalid", "points: 1.5 is no integer", []byte("u42"),
			[]byte(`{"user_id":"u\u001b42`+"\u009b\u202e"+`","points":1.5,"points":1e400,"more":[1,{"a":"<b>"}],"empty":{}}`), header("ce_id", "01J8"), kafka.Header{Key: "null"}, header("\x1b", "\xff\x00"))),
		readRecord("points.dlq", 3, recordOf(at, -1, "malformed", "no JSON", nil, []byte("{\"user_id\":\n\x1b[2J\noriginal   points/9@9\n"))),
		readRecord("points.dlq", 3, recordOf(at, 1, "malformed", "no UTF-8", []byte{}, []byte("{\"user_id\":\xff\xfe\x00 and much more of it}"))),
		readRecord("points.dlq", 3, recordOf(at, 1, "malformed", "too long", nil, nil)),
		readRecord("points.dlq", 3, recordOf(at, 1, "malformed", "empty", nil, []byte{})),
		readRecord("points.dlq", 3, &recordbatch.Record{Offset: 18, Time: 1, Value: []byte("5")}),
	} {
		require.NoError(t, l.write(&text, 3, time.UTC))
		require.NoError(t, cli.WriteJSON(&asJSON, jsontext.Value(l.asJSON())))
		text.WriteString("---\n")
	}
	require.False(t, bytes.ContainsAny(append(asJSON.Bytes(), text.Bytes()...), "\x1b\u009b\u202e"), "it writes to the terminal")
	golden(t, "deadletter.txt", text.Bytes())
}

// golden compares got with a file of testdata. UPDATE_GOLDEN=1 overwrites the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "UPDATE_GOLDEN=1 writes it")
}
