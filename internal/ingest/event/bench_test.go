package event

import "testing"

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
