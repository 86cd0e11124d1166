package safejson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEscapedJSONIsTheSameTextAndCanBeSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\\\"é漢\x00\x1b\x7f\u0085\u009b\u00ad\u200d\u200f\u202e\u2066\ufffd\ufeff\U000e0001\U0010ffff👩")))).Draw(t, "text")
		var b bytes.Buffer
		out := json.NewEncoder(NewWriter(&b))
		out.SetIndent("", "\t")
		out.SetEscapeHTML(false)
		require.NoError(t, out.Encode(map[string]string{text: text}))
		var read map[string]string
		require.NoError(t, json.Unmarshal(b.Bytes(), &read))
		require.Equal(t, map[string]string{text: text}, read)
		require.False(t, strings.ContainsFunc(b.String(), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }), "%q", &b)
	})
	want := `{"a":"é\u202e\u009b2J\u007f\udb40\udc01"}` // to the byte, not the same JSON alone
	require.Equal(t, want, string(Escape([]byte("{\"a\":\"é\u202e\u009b2J\x7f\U000e0001\"}"))))
	plain := []byte(`{"a":1}`)
	require.Equal(t, &plain[0], &Escape(plain)[0])
}
