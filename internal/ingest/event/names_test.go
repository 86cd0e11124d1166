package event

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	boardrules "github.com/standings/standings/internal/rules"
)

func naming(t *testing.T, path string) Rules {
	t.Helper()
	r := rules()
	var err error
	r.Fields, err = NewFields(Paths{Name: path})
	require.NoError(t, err)
	return r
}

func TestAnEventSaysWhatItsMemberIsCalled(t *testing.T) {
	long := strings.Repeat("é", 64)
	for value, want := range map[string]string{
		`{"user_id":"u","points":1,"name":"Ada"}`:                   "Ada",
		`{"user_id":"u","points":1,"name":"\u0041da\u202e \u0000"}`: "Ada\u202e \x00",
		`{"user_id":"u","points":1,"name":"` + long + `"}`:          long,
		`{"user_id":"u","points":1,"name":null}`:                    "",
		`{"user_id":"u","points":1}`:                                "",
		`{"name":"x","user_id":"u","points":1,"name":"y"}`:          "y",
	} {
		var ev Event
		require.Nil(t, NewDecoder(naming(t, "name")).Decode([]byte(value), 5, &ev), value)
		require.Equal(t, want, string(ev.Name), value)
		require.Nil(t, NewDecoder(rules()).Decode([]byte(value), 5, &ev), value)
		require.Nil(t, ev.Name, "names aren't read: %s", value)
	}
	r := naming(t, "player.called")
	r.Others = boardrules.Boards{"global": nil, "arena": ruled(t, "best(stage:9)")}
	var err error
	r.Fields, err = NewFields(Paths{Name: "player.called"}, Other{"stage", ""})
	require.NoError(t, err)
	var ev Event
	require.Nil(t, NewDecoder(r).Decode([]byte(`{"user_id":"u","stage":3,"board":"arena","player":{"called":"Ada"}}`), 5, &ev))
	require.Equal(t, "Ada", string(ev.Name))
}

func TestANameThatCantBeOneIsInvalid(t *testing.T) {
	for name, want := range map[string]string{
		`""`:                                "name at byte 33 is empty: \"\"",
		`7`:                                 "name at byte 33 is not a string: 7",
		`["Ada"]`:                           "name at byte 33 is not a string",
		`"\ud800"`:                          "name at byte 33 has half a surrogate pair",
		`"` + strings.Repeat("é", 65) + `"`: "name at byte 33 is longer than 64 characters",
		`"` + strings.Repeat(`\u0041`, 300) + `"`: "name at byte 33 is longer than 64 characters",
	} {
		var ev Event
		bad := NewDecoder(naming(t, "name")).Decode([]byte(`{"user_id":"u","points":1,"name":`+name+`}`), 5, &ev)
		require.NotNil(t, bad, name)
		require.Equal(t, Invalid, bad.Reason)
		require.Contains(t, bad.Message, want)
	}
}
