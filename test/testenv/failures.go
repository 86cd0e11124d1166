package testenv

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// failures passes go test's output on and remembers the tests that failed. After the long output of a run
// of many packages, that list is printed last.
type failures struct {
	to    io.Writer
	line  []byte
	tests []string // of the package whose output is being read
	all   []string
}

var (
	failedTest    = regexp.MustCompile(`^ *--- FAIL: (\S+)`)
	unfinished    = regexp.MustCompile(`^\t\t(Test\S+) \(`) // listed after "running tests:" on a timeout
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
		f.tests = nil // the failure was expected by the test
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
