package workers

import (
	"encoding/json"
	"sync"

	"github.com/standings/standings/internal/ledger"
)

// Lines caches the parsed lines of workers, so that each line is parsed once: a worker writes a line every
// second, and readers need it for every board. It is safe for concurrent use.
type Lines struct {
	mu   sync.Mutex
	read map[string]readLine // by field; as many as partitions
}

type readLine struct {
	text string
	line Line
	ok   bool
}

// line returns a field's line; ok is false if it is invalid. The Line's pointers are shared.
func (l *Lines) line(field, text string) (Line, bool) {
	if l == nil {
		return parseLine(text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known := l.read[field]
	if !known || r.text != text {
		r = readLine{text: text}
		r.line, r.ok = parseLine(text)
		if l.read == nil {
			l.read = map[string]readLine{}
		}
		l.read[field] = r
	}
	return r.line, r.ok
}

func parseLine(text string) (line Line, ok bool) {
	if json.Unmarshal([]byte(text), &line) != nil {
		return Line{}, false
	}
	return line, true
}

// Of is like the function Of.
func (l *Lines) Of(st *ledger.State, topics []string) Progress {
	return progressOf(l, st, topics)
}
