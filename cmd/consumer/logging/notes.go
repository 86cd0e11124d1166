package logging

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Notes returns a logger for a person who waits. For each warning or error it calls note with one line: the
// message and the errors among its fields.
func Notes(note func(string)) *zap.Logger { return zap.New(noteLog{note}) }

type noteLog struct{ note func(string) }

func (noteLog) Enabled(l zapcore.Level) bool        { return l >= zapcore.WarnLevel }
func (n noteLog) With([]zapcore.Field) zapcore.Core { return n }
func (noteLog) Sync() error                         { return nil }
func (n noteLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if n.Enabled(e.Level) {
		return c.AddCore(e, n)
	}
	return c
}

func (n noteLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	line := e.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			line += ": " + err.Error()
		}
	}
	n.note(line)
	return nil
}
