// Package logging creates the log of a long-running command: JSON for machines, console for a person at a
// terminal.
package logging

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app/build"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// New returns a logger that writes to w with the configured log.level and log.format. Only the console
// format uses colours.
func New(cfg *config.Config, w io.Writer, colours bool) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(cfg.LogLevel)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	format := cfg.LogFormat
	if format == "auto" {
		format = "json"
		if _, ok := terminal.Width(w); ok {
			format = "console"
		}
	}
	fields := zap.NewProductionEncoderConfig()
	fields.EncodeTime = zapcore.ISO8601TimeEncoder
	fields.EncodeDuration = func(d time.Duration, to zapcore.PrimitiveArrayEncoder) { to.AppendString(units.FormatDuration(d)) }
	encoder := zapcore.NewJSONEncoder(fields)
	if format == "console" {
		fields.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		fields.EncodeLevel = zapcore.CapitalLevelEncoder
		if colours {
			fields.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		encoder = zapcore.NewConsoleEncoder(fields)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), nil
}

// Run runs a long-running command with the program's configuration and a log. It logs errors in the
// configuration and the error that ends the command.
func Run(p *cli.Program, do func(*config.Config, *zap.Logger) error) error {
	l, err := p.Configuration()
	if l == nil {
		return err
	}
	log, wrong := New(l.Config, p.Stderr, p.Colours(p.Stderr))
	if wrong != nil {
		return cmp.Or(err, wrong)
	}
	defer log.Sync() //nolint:errcheck // a terminal can't be synced
	version, revision := build.Version()
	log.Info("starting", zap.String("version", version), zap.String("revision", revision), zap.String("go", runtime.Version()))
	if err != nil {
		return ended(log, "the configuration is wrong", err)
	}
	return ended(log, "ended by an error", do(l.Config, log))
}

// ended logs an error that ends the process, so that it appears in the collected log in the log's format.
func ended(log *zap.Logger, message string, err error) error {
	if err == nil {
		return nil
	}
	for line := range cli.Lines(err) {
		log.Error(message, zap.String("error", terminal.Harmless(line)))
	}
	return cli.Logged(err)
}
