package cli

import (
	"bytes"
	"testing"
)

func TestColoursGoByTheTerminalAndNOCOLOR(t *testing.T) {
	if (&Program{}).Colours(&bytes.Buffer{}) {
		t.Error("there is no terminal")
	}
	for variable, want := range map[string]bool{"NO_COLOR=1": false, "NO_COLOR=0": false, "NO_COLOR=": true, "TERM=dumb": false, "TERM=xterm": true} {
		if got := coloursWanted([]string{"HOME=/", variable}); got != want {
			t.Errorf("%s: %t", variable, got)
		}
	}
}
