package event

import (
	"strings"
	"testing"
)

var typical = []byte(`{"event_id":"01JD7XKQ2M","board":"global","user_id":"u42","points":25,"occurred_at":"2026-11-21T08:15:30.123Z"}`)

// now is a record's time: 2026-11-21T08:15:31Z.
const now = 1795248931000

func rules() Rules {
	return Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ name, value string }{
		{"typical", string(typical)},
		{"shortest", `{"user_id":"u42","points":25}`},
		{"millis", `{"user_id":"u42","points":25,"occurred_at":1795248930123}`},
		{"list", `{"user_id":"u42","points":25,"board":["global","eu","guild.7"],"occurred_at":1795248930123}`},
		{"escaped", `{"user_id":"\u00fcser \"42\"","points":1e3,"board":"\u0065u"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := NewDecoder(rules())
			value := []byte(c.value)
			var ev Event
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if bad := d.Decode(value, now, &ev); bad != nil {
					b.Fatal(bad)
				}
			}
		})
	}
}

// A hostile megabyte must take only a few milliseconds, whatever it contains. The benchmark shows that the time
// grows only with the number of bytes.
func BenchmarkDecodeHostile(b *testing.B) {
	const size = 1 << 20
	fill := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	for _, c := range []struct{ name, value string }{
		{"digits", fill(`{"user_id":"u","points":`, "9", "}")},
		{"exponent", fill(`{"user_id":"u","points":1e`, "9", "}")},
		{"fields", fill(`{"user_id":"u","points":1`, `,"points":1`, "}")},
		{"escaped names", fill(`{"user_id":"u","points":1`, `,"\u0070ointz":1`, "}")},
		{"escaped id", fill(`{"points":1,"user_id":"`, `\u0078`, `"}`)},
		{"escaped time", fill(`{"user_id":"u","points":1,"occurred_at":"2026-11-21T08:15:30.`, `\u0031`, `Z"}`)},
		{"list", fill(`{"user_id":"u","points":1,"board":["eu"`, `,"eu"`, `]}`)},
		{"nested and too deep", fill(``, `{"a":`, ``)},
		{"nested and broken", strings.Repeat(`{"`+strings.Repeat("a", 90)+`":`, 9_999)},
		{"not UTF-8 at the end", fill(`{"user_id":"u","points":1,"x":"`, "é", "\xff\"}")},
		{"good", fill(`{"user_id":"u","points":1,"x":"`, "é", `"}`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := NewDecoder(rules())
			value := []byte(c.value)
			var ev Event
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				_ = d.Decode(value, now, &ev)
			}
		})
	}
}

// The cost of a record in another form, compared with the same event in a plain record.
func BenchmarkDecodeForms(b *testing.B) {
	data := strings.Replace(string(typical), `"event_id":"01JD7XKQ2M",`, "", 1)
	envelope := structuredValue(`"time":"2026-11-21T08:15:30.123Z","data":` + data)
	inBase64 := structuredValue(`"time":"2026-11-21T08:15:30.123Z","data_base64":"` + base64Of(data) + `"`)
	for _, c := range []struct {
		name, value string
		headers     [][2]string
		rules       Rules
	}{
		{"plain", data, nil, rules()},
		{"other headers", data, [][2]string{{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}, rules()},
		{"binary", data, binaryMode(), rules()},
		{"structured", envelope, structuredHeaders(structuredType), rules()},
		{"base64", inBase64, structuredHeaders(structuredType), rules()},
		{"nested", `{"player":{"id":"u42"},"score":{"delta":25},"meta":{"region":"global","at":"2026-11-21T08:15:30.123Z"}}`, nil, mapped(b, nested)},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := NewDecoder(c.rules)
			value := []byte(c.value)
			var headers [][2][]byte
			for _, h := range c.headers {
				headers = append(headers, [2][]byte{[]byte(h[0]), []byte(h[1])})
			}
			var ev Event
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				var h Headers
				for _, header := range headers {
					h.Note(header[0], header[1])
				}
				if bad := d.DecodeWith(&h, value, now, &ev); bad != nil {
					b.Fatal(bad)
				}
			}
		})
	}
}
