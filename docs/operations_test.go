package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/standings/standings/cmd/consumer/run"
	"github.com/standings/standings/internal/ingest/health"
)

// Whoever is woken by an alert, or reads why a partition doesn't go on, finds its section.
func TestTheOperatorsGuideHasASectionForEveryAlertAndReason(t *testing.T) {
	guide, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := os.ReadFile("../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat(health.HaltReasons(), health.WaitReasons(), run.Reasons())
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)`).FindAllStringSubmatch(string(alerts), -1) {
		words = append(words, m[1])
	}
	if len(words) < 45 {
		t.Errorf("only %d alerts and reasons were found: the pattern is wrong", len(words))
	}
	_, tables, _ := strings.Cut(string(guide), "\n## Find your section\n")
	tables, _, _ = strings.Cut(tables, "\n## ")
	for _, word := range words {
		if !strings.Contains(tables, "`"+word+"`") {
			t.Errorf("no row leads from %s to a section", word)
		}
	}
}
