package workers

import (
	"encoding/json"
	"sync"

	"github.com/standings/standings/internal/ledger"
)

// Lines reads what workers wrote of themselves, each line once: a worker writes every second,
// and whoever shows boards reads the same lines with each of them. It is safe for concurrent use.
type Lines struct {
	mu   sync.Mutex
	read map[string]readLine // by field: as many as there are partitions
}

type readLine struct {
	text string
	line Line
	ok   bool
}

// line is a field's line; not ok where it is none. What a Line points to is shared.
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

// Of is as the function of this name.
func (l *Lines) Of(st *ledger.State, topics []string) Progress {
	return progressOf(l, st, topics)
}
