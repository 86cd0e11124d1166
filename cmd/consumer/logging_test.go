package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/config"
)

func TestDurationsInTheLogAreAsSettingsHaveThem(t *testing.T) {
	var out bytes.Buffer
	log, err := logging.New(config.Defaults(), &out, false)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("a line", zap.Duration("retention", 60*24*time.Hour), zap.Duration("wait", 5*time.Minute))
	if !strings.Contains(out.String(), `"retention":"60d","wait":"5m"`) {
		t.Error(out.String())
	}
}
