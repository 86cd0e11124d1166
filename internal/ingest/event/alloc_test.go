package event

import (
	"strings"
	"testing"
)

func TestAGoodEventAllocatesNothing(t *testing.T) {
	d := NewDecoder(rules())
	for _, value := range [][]byte{
		typical,
		[]byte(`{"user_id":42,"points":1e3,"board":["eu","us","eu"],"occurred_at":1795248930123}`),
		[]byte(`{"user\u005fid":"\u00fc \"42\"","points":-25.0,"board":["\u0065u","us"],"occurred_at":"2026-11-21T08:15:30\u005a","x":{"a":[1,2,{}]}}`),
	} {
		var ev Event
		if n := testing.AllocsPerRun(100, func() {
			if bad := d.Decode(value, now, &ev); bad != nil {
				t.Fatal(bad)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", value, n)
		}
	}
}

func TestACloudEventAndAMappedOneAllocateNothing(t *testing.T) {
	for _, c := range []struct {
		rules   Rules
		headers [][2]string
		value   string
	}{
		{rules(), binaryMode(), plainData},
		{rules(), binaryMode(), timedData},
		{rules(), structuredHeaders("Application/CloudEvents+JSON; charset=utf-8"), structuredValue(`"time":"2026-11-21T08:15:30\u005a","data":` + plainData)},
		{rules(), structuredHeaders(structuredType), structuredValue(`"datacontenttype":"text/x+json","data_base64":"` + base64Of(plainData) + `"`)},
		{mapped(t, nested), nil, `{"pl\u0061yer":{"id":"u42"},"score":{"delta":25},"meta":{"region":["eu"],"at":1795248930123},"meta":{}}`},
	} {
		d := NewDecoder(c.rules)
		value := []byte(c.value)
		var headers [][2][]byte
		for _, h := range c.headers {
			headers = append(headers, [2][]byte{[]byte(h[0]), []byte(h[1])})
		}
		var ev Event
		if n := testing.AllocsPerRun(100, func() {
			var h Headers
			for _, header := range headers {
				h.Note(header[0], header[1])
			}
			if bad := d.DecodeWith(&h, value, now, &ev); bad != nil {
				t.Fatal(bad)
			}
			d.ID()
		}); n != 0 {
			t.Errorf("%s: %v allocations", value, n)
		}
	}
}

func TestAHostileTextLeavesNoLargeBufferBehind(t *testing.T) {
	d := NewDecoder(rules())
	var ev Event
	if bad := d.Decode([]byte(with("occurred_at", `"2026-11-21T08:15:30.`+strings.Repeat("1", 900_000)+`\u005a"`)), now, &ev); bad != nil {
		t.Fatal(bad)
	}
	if bad := d.Decode(typical, now, &ev); bad != nil {
		t.Fatal(bad)
	}
	if cap(d.unescaped) > maxKept {
		t.Errorf("still holds %d bytes", cap(d.unescaped))
	}
	var h Headers
	h.Note([]byte("content-type"), []byte(structuredType))
	large := structuredValue(`"data_base64":"` + base64Of(`{"user_id":"u","points":1,"x":"`+strings.Repeat("x", 600_000)+`"}`) + `"`)
	if bad := d.DecodeWith(&h, []byte(large), now, &ev); bad != nil {
		t.Fatal(bad)
	}
	if bad := d.Decode(typical, now, &ev); bad != nil || cap(d.binary) > maxKept {
		t.Errorf("%v, and still holds %d bytes", bad, cap(d.binary))
	}
}

func TestTheTextsOfAnEventDoNotShareTheirBytes(t *testing.T) {
	d := NewDecoder(rules())
	var ev Event
	value := `{"board":["\u0061\u0061","\u0062\u0062"],"user_id":"\u0075` + strings.Repeat(`\u0078`, 255) + `","points":1}`
	for range 3 {
		if bad := d.Decode([]byte(value), now, &ev); bad != nil {
			t.Fatal(bad)
		}
		_ = append(ev.User, "!!"...)
		_ = append(ev.Boards[0], "!!"...)
		if string(ev.User) != "u"+strings.Repeat("x", 255) || names(ev.Boards) != "aa bb" {
			t.Errorf("got %q of %s", ev.User, names(ev.Boards))
		}
	}
}
