package rebuild

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/standings/standings/internal/config"
)

// A file of offsets either sets each partition once, as written, or is rejected with the line's number.
func FuzzAnOffsetFileIsWhatItSaysOrRefused(f *testing.F) {
	for _, text := range []string{
		"points,0,480\npoints,1,0\n", " points , 3 , 9223372036854775807", "\"points\",0,1\r\n", "points,0,480\npoints,0,481\n", "points,0,480\npoints , 0,481\n",
		"points,-1,0", "points,0,-1", "points,0", "points,0,1,2", "", "\n\n", "\"po\nints\",0,1", "\"\",0,1", "\" \",0,1", "points,2147483648,1", "\ufeffpoints,0,1", "points,+1,+1", "a/b,0,1", "points,0x1,1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readOffsets(strings.NewReader(text))
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %q isn't a line", text, err)
			}
			return
		}
		var again bytes.Buffer
		for _, field := range slices.Sorted(maps.Keys(all)) {
			at := strings.LastIndexByte(field, '/')
			if err := config.CheckTopic(field[:at]); err != nil || all[field] < 0 {
				t.Errorf("%q is taken: %q at %d (%v)", text, field, all[field], err)
			}
			fmt.Fprintf(&again, "%s,%s,%d\n", field[:at], field[at+1:], all[field])
		}
		if same, err := readOffsets(&again); err != nil || !maps.Equal(same, all) {
			t.Errorf("%q is %v, and written again %v, %v", text, all, same, err)
		}
	})
}
