package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatesHaveColoursWhereTheyAreStates(t *testing.T) {
	states := map[string]Colour{"running": Green, "halted": Red, "not checked": Yellow}
	for text, want := range map[string]string{
		"group g: 3 partitions, 2 running, 1 halted; lag 3": "group g: 3 partitions, 2 <g>running</>, 1 <r>halted</>; lag 3",
		"points/3  480  halted   me":                        "points/3  480  <r>halted</>   me",
		"points/3  480  halted":                             "points/3  480  <r>halted</>",
		"points/3  running  halted":                         "points/3  <g>running</>  <r>halted</>",
		"partition  not checked  it is away":                "partition  <y>not checked</>  it is away",
		"it halted, and is not running any more":            "it halted, and is not running any more",
		"it would work: 1 halted, 20 running":               "it would work: 1 <r>halted</>, 20 <g>running</>",
		"halted  3":                                         "halted  3",
		"a  \x1b[31mrunning\x1b[0m  b":                      `a  \x1b[31mrunning\x1b[0m  b`,
	} {
		var out strings.Builder
		require.NoError(t, WriteColoured(&out, text+"\n", states, true))
		want = strings.NewReplacer("<g>", string(Green), "<y>", string(Yellow), "<r>", string(Red), "</>", plain).Replace(want)
		if out.String() != want+"\n" {
			t.Errorf("%q instead of %q", out.String(), want)
		}
	}
}
