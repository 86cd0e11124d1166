package run

// The log: JSON for machines, console for a person at a terminal.

import (
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
)

// NewLogger writes to w as log.level and log.format say. Colours are for the console alone.
func NewLogger(cfg *config.Config, w io.Writer, colours bool) (*zap.Logger, error) {
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
