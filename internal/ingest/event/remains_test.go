package event

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfABadEventTheMemberTheBoardsAndTheTimeCanStillBeRead(t *testing.T) {
	const at = int64(1795248930123)
	for value, want := range map[string]Remains{
		`{"user_id":"u42","points":"25","board":["eu","us"],"occurred_at":1795248930123}`: {[]byte("u42"), [][]byte{[]byte("eu"), []byte("us")}, at},
		`{"user_id":42,"points":1.5}`:                                  {[]byte("42"), [][]byte{[]byte("global")}, now},
		`{"user_id":"\u0075","points":1,"board":"a b"}`:                {[]byte("u"), nil, now},
		`{"user_id":"u","points":1,"occurred_at":"yesterday"}`:         {[]byte("u"), [][]byte{[]byte("global")}, -1},
		`{"user_id":"","points":1}`:                                    {nil, nil, -1},
		`{"points":1}`:                                                 {nil, nil, -1},
		`{"user_id":"u","points":`:                                     {nil, nil, -1},
		`{"user_id":"u","points":1,"x":"` + strings.Repeat("x", 1<<20): {nil, nil, -1}, // too long to be read
		``: {nil, nil, -1},
	} {
		d := NewDecoder(rules())
		var ev Event
		require.NotNil(t, d.Decode([]byte(value), now, &ev), value)
		require.Equal(t, want, d.Remains(now), value)
	}
}

func TestOfABadCloudEventThereRemainsWhatItsDataHas(t *testing.T) {
	const at = int64(1795248930123)
	bad := strings.Replace(plainData, `"points":25`, `"points":"25"`, 1)
	require.NotEqual(t, plainData, bad)
	for _, r := range []struct {
		headers [][2]string
		value   string
		want    string
	}{
		{binaryMode(), bad, "u42"},
		{structuredHeaders(structuredType), structuredValue(`"time":"2026-11-21T08:15:30.123Z","data":` + bad), "u42"},
		{structuredHeaders(structuredType), structuredValue(`"time":"2026-11-21T08:15:30.123Z","data_base64":"` + base64Of(bad) + `"`), "u42"},
		{structuredHeaders(structuredType), structuredValue(`"data_base64":"e30="`), ""},
		{structuredHeaders(structuredType), `{"specversion":"7","data":` + bad + `}`, ""},
	} {
		d := NewDecoder(rules())
		var h Headers
		for _, header := range r.headers {
			h.Note([]byte(header[0]), []byte(header[1]))
		}
		var ev Event
		require.NotNil(t, d.DecodeWith(&h, []byte(r.value), now, &ev), r.value)
		got := d.Remains(now)
		require.Equal(t, r.want, string(got.User), r.value)
		if r.want != "" {
			require.Equal(t, at, got.Time, r.value)
		}
	}
}
