package event

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	boardrules "github.com/standings/standings/internal/rules"
)

func ruled(t *testing.T, text string) *boardrules.Rule {
	t.Helper()
	r, err := boardrules.ParseRule(text)
	require.NoError(t, err)
	return &r
}

// byRules returns a decoder for one board with the default rule and three with others. No other boards are
// configured.
func byRules(t *testing.T, others ...Other) *Decoder {
	t.Helper()
	r := rules()
	r.Boards = nil
	r.Others = boardrules.Boards{
		"global": nil, "arena": ruled(t, "best(stage:999,revives:99:fewest)"),
		"medals": ruled(t, "sum(gold:9,silver:9)"), "points": ruled(t, "last(points:50)"),
	}
	if others == nil {
		others = []Other{{"stage", ""}, {"revives", ""}, {"gold", ""}, {"silver", ""}}
	}
	var err error
	r.Fields, err = NewFields(Paths{}, others...)
	require.NoError(t, err)
	return NewDecoder(r)
}

func TestAnEventHasWhatItsBoardsCount(t *testing.T) {
	for value, want := range map[string]Event{
		`{"user_id":"u","points":7}`:                                                                        {Points: 7},
		`{"user_id":"u","points":7,"stage":"x","board":["eu","global"]}`:                                    {Points: 7},
		`{"user_id":"u","stage":42,"revives":3,"board":"arena"}`:                                            {Tuples: []codec.Tuple{{42, 3}}},
		`{"user_id":"u","points":"none","stage":4.2e1,"revives":0,"board":"arena"}`:                         {Tuples: []codec.Tuple{{42}}},
		`{"user_id":"u","gold":-9,"silver":9,"points":-7,"board":["medals","eu"]}`:                          {Points: -7, Tuples: []codec.Tuple{{-9, 9}, {}}},
		`{"user_id":"u","gold":1,"silver":0,"points":50,"stage":1,"revives":99,"board":["points","arena"]}`: {Tuples: []codec.Tuple{{50}, {1, 99}}},
	} {
		var got Event
		require.Nil(t, byRules(t).Decode([]byte(value), 5, &got), value)
		require.Equal(t, want.Points, got.Points, value)
		require.Equal(t, want.Tuples, got.Tuples, value)
	}
}

func TestAnEventThatLacksWhatABoardCountsIsInvalidForAll(t *testing.T) {
	for value, want := range map[string]string{
		`{"user_id":"u","board":"arena","stage":1}`:                        "board arena needs it: revives is missing",
		`{"user_id":"u","board":["global","arena"],"points":1}`:            "board arena needs it: stage is missing",
		`{"user_id":"u","board":["arena","global"],"stage":1,"revives":1}`: "points is missing",
		`{"user_id":"u","board":"arena","stage":1,"revives":100}`:          "board arena needs it: revives at byte 51 is out of range: 100",
		`{"user_id":"u","board":"arena","stage":-1,"revives":1}`:           "board arena needs it: stage at byte 39 is out of range: -1",
		`{"user_id":"u","board":"arena","stage":1.5,"revives":1}`:          "board arena needs it: stage at byte 39 is not an integer: 1.5",
		`{"user_id":"u","board":"arena","stage":"1","revives":1}`:          `board arena needs it: stage at byte 39 is a number in quotes: "1"`,
		`{"user_id":"u","board":"medals","gold":-10,"silver":0}`:           "board medals needs it: gold at byte 39 is out of range: -10",
		`{"user_id":"u","board":"points","points":51}`:                     "board points needs it: points at byte 41 is out of range: 51",
		`{"user_id":"u","board":"arena","stage":null,"revives":1}`:         "board arena needs it: stage is missing",
		`{"user_id":"u","board":"arena","stage":{},"revives":1}`:           "board arena needs it: stage at byte 39 is not a number: {}",
	} {
		ev := Event{Points: 99}
		bad := byRules(t).Decode([]byte(value), 5, &ev)
		require.NotNil(t, bad, value)
		require.Equal(t, Bad{Invalid, want}, *bad, value)
		require.Equal(t, Event{Points: 99}, ev)
	}
}

// An event's boards decide what it needs, so a fault in them comes first.
func TestABadBoardComesBeforeWhatItWouldCount(t *testing.T) {
	var ev Event
	require.Equal(t, UnknownBoard, byRules(t).Decode([]byte(`{"user_id":"u","board":["arena","?"]}`), 5, &ev).Reason)
	require.Equal(t, BadTime, byRules(t).Decode([]byte(`{"user_id":"u","board":"arena","stage":1,"revives":1,"occurred_at":-1}`), 5, &ev).Reason)
}

func TestTheFieldsOfABoardMayStandElsewhere(t *testing.T) {
	d := byRules(t, Other{"stage", "run.stage"}, Other{"revives", "run.lives.lost"}, Other{"gold", "a"}, Other{"silver", "b"})
	var ev Event
	require.Nil(t, d.Decode([]byte(`{"user_id":"u","board":"arena","stage":9,"run":{"stage":7,"lives":{"lost":2}}}`), 5, &ev))
	require.Equal(t, []codec.Tuple{{7, 2}}, ev.Tuples)
	bad := d.Decode([]byte(`{"user_id":"u","board":"arena","run":{"stage":7,"lives":3}}`), 5, &ev)
	require.Equal(t, "board arena needs it: revives is missing: run.lives at byte 56 is not an object: 3", bad.Message)
	// The fields of the previous event do not carry over.
	require.NotNil(t, d.Decode([]byte(`{"user_id":"u","board":"arena"}`), 5, &ev))
}

func TestAMessageOfALongFieldStaysALine(t *testing.T) {
	name := strings.Repeat("n", 64)
	r := rules()
	r.Boards, r.Others = nil, boardrules.Boards{strings.Repeat("b", 64): ruled(t, "best("+name+":9)")}
	var err error
	r.Fields, err = NewFields(Paths{}, Other{name, strings.Repeat("p", 250)})
	require.NoError(t, err)
	var ev Event
	bad := NewDecoder(r).Decode([]byte(`{"user_id":"u","board":"`+strings.Repeat("b", 64)+`","`+strings.Repeat("p", 250)+`":"`+strings.Repeat("v", 99)+`"}`), 5, &ev)
	require.LessOrEqual(t, len(bad.Message), 200)
	require.Contains(t, bad.Message, name)
}
