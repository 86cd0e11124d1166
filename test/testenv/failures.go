package testenv

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// failures passes go test's output on and remembers what failed in it: of a run of many
// packages, whose output is long, that is what one wants to read last.
type failures struct {
	to    io.Writer
	line  []byte
	tests []string // of the package whose output this is
	all   []string
}

var (
	failedTest    = regexp.MustCompile(`^ *--- FAIL: (\S+)`)
	unfinished    = regexp.MustCompile(`^\t\t(Test\S+) \(`) // of "running tests:" after a timeout
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)(?:.*(\[.*\]))?`)
)

func (f *failures) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		f.line = append(f.line, line...)
		if !whole {
			break
		}
		f.see(string(f.line))
		f.line, rest = f.line[:0], after
	}
	return f.to.Write(p)
}

func (f *failures) see(line string) {
	if m := failedTest.FindStringSubmatch(line); m != nil {
		f.tests = append(f.tests, m[1])
	} else if m := unfinished.FindStringSubmatch(line); m != nil {
		f.tests = append(f.tests, m[1]+" (not ended)")
	} else if strings.HasPrefix(line, "ok  \t") {
		f.tests = nil // a test that was to fail
	} else if m := failedPackage.FindStringSubmatch(line); m != nil {
		name := withinModule(m[1])
		if len(f.tests) == 0 {
			f.all = append(f.all, strings.TrimSpace(name+" "+m[2]))
		}
		for _, test := range f.tests {
			f.all = append(f.all, name+" "+test)
		}
		f.tests = nil
	}
}

func (f *failures) list(w io.Writer) {
	if len(f.all) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFAILED: %d\n  %s\n", len(f.all), strings.Join(f.all, "\n  "))
}
