package event

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The generators favour nearly valid values.

func quoted(t *rapid.T, text string) string {
	escaped := rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "tenths escaped")
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r < ' ' || r == '"' || r == '\\':
			fmt.Fprintf(&b, `\u%04X`, r)
		case escaped > 0 && r < 0x10000 && rapid.IntRange(0, 9).Draw(t, "tenth") < escaped:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func anyString() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return quoted(t, rapid.String().Draw(t, "text")) }),
		rapid.Custom(func(t *rapid.T) string {
			return `"` + strings.Repeat(rapid.SampledFrom([]string{"x", "é", "😀", `\u0078`, `\n`, `\ud83d\ude00`}).Draw(t, "unit"), rapid.IntRange(0, 260).Draw(t, "units")) + `"`
		}),
		rapid.Map(rapid.StringMatching(`(\\u[dD][89abcdEF][0-9a-f]{2}|\\\\|\\n|u|d8){0,4}`), func(s string) string { return `"` + s + `"` }),
	)
}

func anyNumber() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) }),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,6}0{0,20})?([eE][+-]?0{0,2}[0-9]{1,2})?`),
		rapid.StringMatching(`-?[1-9][0-9]{0,5}(\.0{1,4})?(e-?[0-4])?`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,260})`),
		rapid.StringMatching(`-?[0-9](\.[0-9]{1,3})?([eE][0-9]{1,12})?`),
		rapid.SampledFrom([]string{"99999999", "100000000", "9223372036854775807", "9223372036854775808", "18446744073709551616", "0e999999999", "1e-400000000", "1e400"}),
	)
}

func anyTime() *rapid.Generator[string] {
	near := rapid.Int64Range(now-400_000, now+400_000)
	return rapid.OneOf(
		rapid.Map(near, func(n int64) string { return fmt.Sprint(n) }),
		rapid.Map(rapid.Int64Range(-5, 4294967296005), func(n int64) string { return fmt.Sprintf("%d.0", n) }),
		rapid.Map(rapid.StringMatching(`(19[67][0-9]|20[0-2][0-9]|2106|2026)-(0[0-9]|1[0-3])-[0-3][0-9][Tt](0[0-9]|1[0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9](\.[0-9]{1,12})?([Zz]|[+-][0-2][0-9]:[0-6][0-9])`), quote),
		rapid.Map(rapid.StringMatching(`(2016-12-31|2015-06-30|1972-06-30|2026-11-21|2017-01-01)T(23:59|05:29|18:59|08:59|08:15):(59|60|30)(\.[0-9]{1,4})?(Z|\+05:30|-05:00|\+09:00)`), quote),
		rapid.Map(rapid.StringMatching(`2026-11-21[Tt ]0?8:(15|20):3[01](\.0{0,3}[0-9]{0,2}|,5)?[Zz]?`), quote),
		anyString(),
	)
}

func quote(s string) string { return `"` + s + `"` }

func anyBoard() *rapid.Generator[string] {
	name := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"eu", "us", "global", `\u0065u`, "a.b", "-a", ""}), quote),
		rapid.Map(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,3}`), quote),
		rapid.Map(rapid.StringMatching(`[A-Za-z0-9._-]{62,66}`), quote),
	)
	entry := rapid.OneOf(name, name, name, name, name, anyString(), rapid.Just("null"), rapid.Just(`["eu"]`))
	list := rapid.Map(rapid.SliceOfN(name, 0, 10), func(names []string) string { return "[" + strings.Join(names, " , ") + "]" })
	mixed := rapid.Map(rapid.SliceOfN(entry, 0, 4), func(names []string) string { return "[" + strings.Join(names, ",") + "]" })
	return rapid.OneOf(name, list, mixed)
}

// plainValue generates a valid value, so that a fault elsewhere in the event shows.
func plainValue(field string) *rapid.Generator[string] {
	switch field {
	case "user_id":
		return rapid.StringMatching(`"[a-z é]{1,5}"|-?[1-9][0-9]{0,5}`)
	case "points":
		return rapid.StringMatching(`-?[1-9][0-9]{0,5}(\.0{1,4})?(e[01])?`)
	case "name":
		return rapid.StringMatching(`"[a-z é]{1,70}"`)
	case "board":
		return rapid.StringMatching(`"(eu|us)"|\["eu"(,"us"){0,7}\]`)
	}
	return rapid.StringMatching(`"(1999|20[012][0-9])-(0[1-9]|1[0-2])-[012][1-8]T[01][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,5})?(Z|[+-]0[0-9]:30)"|179524[0-8][0-9]{6}`)
}

func oddValue() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"null", "true", "false", "{}", "[]", `""`, `{"user_id":1,"user_id":2}`, "[[]]", `"0"`, "nul", "01", "-", "1.", `"\ud800"`, `"\x"`, "\"\n\"", "\"\xff\"", ""})
}

func anyObject() *rapid.Generator[string] {
	fields := map[string]*rapid.Generator[string]{
		"user_id": rapid.OneOf(anyString(), anyNumber()), "points": anyNumber(), "board": anyBoard(), "occurred_at": anyTime(),
	}
	return rapid.Custom(func(t *rapid.T) string {
		order := rapid.Permutation([]string{"user_id", "points", "board", "occurred_at"}).Draw(t, "order")
		if rapid.Bool().Draw(t, "some are left out") {
			order = order[:rapid.IntRange(1, 4).Draw(t, "fields")]
		}
		more := rapid.SliceOfN(rapid.SampledFrom([]string{"user_id", "points", "board", "occurred_at", "Points", "event_id"}), 0, 2).Draw(t, "more")
		var members []string
		for _, name := range append(order, more...) {
			value := oddValue()
			generator, known := fields[name]
			switch way := rapid.IntRange(0, 19).Draw(t, "way"); {
			case known && way > 6:
				value = plainValue(name)
			case known && way > 0:
				value = generator
			}
			members = append(members, quoted(t, name)+rapid.SampledFrom([]string{":", " : "}).Draw(t, "colon")+value.Draw(t, "value"))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

func TestTheDecoderAgreesWithAnOracleThatSharesNoCode(t *testing.T) {
	listed := rules()
	listed.Boards = []string{"eu", "us", "global"}
	wide := Rules{MaxEventBytes: 4096, MaxPoints: 1<<63 - 1, MaxFuture: 1 << 62}
	decoders := []*Decoder{NewDecoder(rules()), NewDecoder(listed), NewDecoder(wide)}
	seen := map[Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			value := []byte(anyObject().Draw(t, "object"))
			if rapid.IntRange(0, 15).Draw(t, "broken") == 9 {
				at := rapid.IntRange(0, len(value)-1).Draw(t, "at")
				value[at] = rapid.Byte().Draw(t, "byte")
			}
			recordTime := rapid.OneOf(rapid.Just(int64(now)), rapid.Int64Range(-1, 4294967296001), rapid.Int64()).Draw(t, "record time")
			// One decoder reads all of them: nothing of an event may carry over to the next.
			seen[agreeOn(t, rapid.SampledFrom(decoders).Draw(t, "decoder"), nil, record{value: value, time: recordTime})]++
		}
	})
	for _, reason := range []Reason{"", Malformed, Invalid, UnknownBoard, BadTime} {
		if seen[reason] == 0 {
			t.Errorf("the generator never made an event with reason %q: %v", reason, seen)
		}
	}
}

func TestAShortNumberIsReadAsTheLongWayWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,17})`).Draw(t, "number")
		limit := rapid.Int64Min(0).Draw(t, "limit")
		digits, negative := strings.CutPrefix(text, "-")
		n, f := integer([]byte(text), limit)
		if wantN, wantF := decimal([]byte(digits), negative, limit); n != wantN || f != wantF {
			t.Fatalf("%s within %d: %d %d, the long way %d %d", text, limit, n, f, wantN, wantF)
		}
	})
}

// FuzzDecode compares decoder and oracle on inputs fuzzed from the corpus under testdata.
func FuzzDecode(f *testing.F) {
	f.Add(typical, int64(now))
	listed := rules()
	listed.Boards = []string{"eu", "us", "global"}
	f.Fuzz(func(t *testing.T, value []byte, recordTime int64) {
		agreeOn(t, NewDecoder(rules()), nil, record{value: value, time: recordTime})
		agreeOn(t, NewDecoder(listed), nil, record{value: value, time: recordTime})
	})
}
