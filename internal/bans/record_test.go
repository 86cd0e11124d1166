package bans

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = time.Date(2026, 11, 23, 8, 15, 30, 123e6, time.UTC)

func TestARecordIsWrittenAsTheContractSays(t *testing.T) {
	for name, c := range map[string]struct {
		record     Record
		key, value string
	}{
		"on all boards": {Record{Key: Key{Member: "u42"}, Reason: "aimbot", By: "eve", At: at}, ":u42",
			`{"member":"u42","board":"","reason":"aimbot","by":"eve","at":"2026-11-23T08:15:30.123Z"}`},
		"on one, until": {Record{Key: Key{"eu", "a:b<c>"}, Reason: "spam & more", At: at, Until: at.Add(time.Hour)}, "eu:a:b<c>",
			`{"member":"a:b<c>","board":"eu","reason":"spam & more","by":"","at":"2026-11-23T08:15:30.123Z","until":"2026-11-23T09:15:30.123Z"}`},
		"erased": {Record{Key: Key{Member: "u42"}, Reason: "asked for it", By: "eve", At: at, Erased: true}, ":u42",
			`{"member":"u42","board":"","reason":"asked for it","by":"eve","at":"2026-11-23T08:15:30.123Z","erased":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			key, value, err := c.record.Encode()
			require.NoError(t, err)
			require.Equal(t, c.key, string(key))
			require.Equal(t, c.value, string(value))
			k, r, err := Decode(key, value)
			require.NoError(t, err)
			require.Equal(t, c.record.Key, k)
			require.Equal(t, &c.record, r)
		})
	}
}

func TestATombstoneIsAKeyAlone(t *testing.T) {
	k, r, err := Decode([]byte("eu:u42"), nil)
	require.NoError(t, err)
	require.Equal(t, Key{"eu", "u42"}, k)
	require.Nil(t, r)
}

// bad has records that are not valid bans, keyed by their fault.
var bad = map[string]struct{ key, value string }{
	"no key":                 {"-", `{}`},
	"no colon":               {"u42", `{"member":"u42","board":"","reason":"x","at":"2026-11-23T08:15:30Z"}`},
	"no member":              {"eu:", `{"member":"","board":"eu","reason":"x","at":"2026-11-23T08:15:30Z"}`},
	"no board's name":        {"e u:u42", `{"member":"u42","board":"e u","reason":"x","at":"2026-11-23T08:15:30Z"}`},
	"another member":         {":u42", `{"member":"u43","board":"","reason":"x","at":"2026-11-23T08:15:30Z"}`},
	"another board":          {":u42", `{"member":"u42","board":"eu","reason":"x","at":"2026-11-23T08:15:30Z"}`},
	"no JSON":                {":u42", `{`},
	"not an object":          {":u42", `7`},
	"null":                   {":u42", `null`},
	"no reason":              {":u42", `{"member":"u42","board":"","at":"2026-11-23T08:15:30Z"}`},
	"no time":                {":u42", `{"member":"u42","board":"","reason":"x"}`},
	"a time of no form":      {":u42", `{"member":"u42","board":"","reason":"x","at":"yesterday"}`},
	"an end of no form":      {":u42", `{"member":"u42","board":"","reason":"x","at":"2026-11-23T08:15:30Z","until":7}`},
	"erased until":           {":u42", `{"member":"u42","board":"","reason":"x","at":"2026-11-23T08:15:30Z","until":"2026-11-24T08:15:30Z","erased":true}`},
	"erased on one board":    {"eu:u42", `{"member":"u42","board":"eu","reason":"x","at":"2026-11-23T08:15:30Z","erased":true}`},
	"bytes that aren't text": {":\xff", `{"member":"\xff","board":"","reason":"x","at":"2026-11-23T08:15:30Z"}`},
	"too long a member":      {":" + strings.Repeat("m", 257), `{"member":"` + strings.Repeat("m", 257) + `","board":"","reason":"x","at":"2026-11-23T08:15:30Z"}`},
}

func TestABadRecordIsRefused(t *testing.T) {
	for name, c := range bad {
		key := []byte(c.key)
		if c.key == "-" {
			key = nil
		}
		if _, r, err := Decode(key, []byte(c.value)); err == nil || r != nil {
			t.Errorf("%s: taken as %+v", name, r)
		}
	}
}

func anyRecord(t *rapid.T) *Record {
	text := rapid.StringMatching(`[ -~äß漢]{1,40}`)
	r := &Record{Key: Key{rapid.SampledFrom([]string{"", "eu", "a.b-C_1"}).Draw(t, "board"), text.Draw(t, "member")},
		Reason: "x" + text.Draw(t, "reason"), By: text.Draw(t, "by"), At: time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "at")).UTC()}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 1:
		r.Until = time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "until")).UTC()
	case 2:
		r.Erased, r.Board = true, ""
	}
	return r
}

func TestWhatIsWrittenIsReadAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord(t)
		key, value, err := r.Encode()
		require.NoError(t, err)
		require.True(t, json.Valid(value))
		k, got, err := Decode(key, value)
		require.NoError(t, err)
		require.Equal(t, r.Key, k)
		require.Equal(t, r, got)
	})
}

// Compaction removes records that a later one of the same key replaces, and may remove tombstones. The remaining
// records result in the same state.
func TestACompactedTopicComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type step struct {
			k Key
			r *Record
		}
		var all []step
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			k := Key{rapid.SampledFrom([]string{"", "eu"}).Draw(t, "board"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "member")}
			s := step{k: k}
			if rapid.Bool().Draw(t, "ban") {
				s.r = &Record{Key: k, At: time.UnixMilli(int64(len(all)))}
			}
			all = append(all, s)
		}
		last, gone := map[Key]int{}, map[Key]bool{}
		for i, s := range all {
			last[s.k] = i
		}
		for _, k := range []Key{{"", "a"}, {"", "b"}, {"eu", "a"}, {"eu", "b"}} { // a tombstone goes last
			gone[k] = rapid.Bool().Draw(t, "only the last is left of "+k.Text())
		}
		whole, compacted := State{}, State{}
		for i, s := range all {
			whole.take(s.k, s.r)
			switch hidden := last[s.k] != i; {
			case gone[s.k] && (hidden || s.r == nil):
			case hidden && s.r != nil && rapid.Bool().Draw(t, "is compacted"):
			default:
				compacted.take(s.k, s.r)
			}
		}
		require.Equal(t, whole, compacted)
	})
}

func FuzzDecode(f *testing.F) {
	for _, c := range bad {
		f.Add([]byte(c.key), []byte(c.value))
	}
	f.Add([]byte(":u42"), []byte(`{"member":"u42","board":"","reason":"aimbot","by":"eve","at":"2026-11-23T08:15:30.123Z","more":[1]}`))
	f.Add([]byte("eu:u42"), []byte(`{"member":"u42","board":"eu","reason":"x","at":"2026-11-23T08:15:30+14:00","until":"2026-11-24T08:15:30.123456789Z"}`))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		k, r, err := Decode(key, value)
		if err != nil || r == nil {
			return
		}
		again, written, err := r.Encode()
		if err != nil {
			t.Fatalf("%q was taken and can't be written: %v", value, err)
		}
		k2, r2, err := Decode(again, written)
		if err != nil || k2 != k || r2.Reason != r.Reason || !r2.At.Equal(r.At) || !r2.Until.Equal(r.Until) || r2.Erased != r.Erased {
			t.Fatalf("%q became %q: %+v, %v", value, written, r2, err)
		}
	})
}
