package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/standings/standings/internal/ingest/health"
)

// processReasons are those that a process has of its own on /readyz and /healthz, as readiness.go
// declares them: nothing imports a command.
func processReasons(t *testing.T) (all []string) {
	t.Helper()
	source, err := os.ReadFile("../internal/app/run/readiness.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "\n// Reasons, beside those of halts")
	list, _, _ = strings.Cut(list, "\n)")
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ += "(\w+)"`).FindAllStringSubmatch(list, -1) {
		all = append(all, m[1])
	}
	if len(all) < 9 {
		t.Errorf("only %d reasons of the process were found: the pattern is wrong", len(all))
	}
	return all
}

// pages is where the pages of this folder are for the reader of an alert.
const pages = "https://github.com/standings/standings/blob/main/docs/"

func TestEveryAlertLeadsToItsSectionOfTheOperatorsGuide(t *testing.T) {
	guide, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := os.ReadFile("../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(alerts), "- alert: ")[1:] {
		name, rest, _ := strings.Cut(text, "\n")
		m := regexp.MustCompile(`(?m)^ +runbook_url: (\S+)$`).FindStringSubmatch(rest)
		if m == nil {
			t.Errorf("%s has no runbook_url", name)
			continue
		}
		place, ok := strings.CutPrefix(m[1], pages)
		page, anchor, _ := strings.Cut(place, "#")
		section, err := os.ReadFile(page)
		if err != nil || !ok || !anchors(string(section))[anchor] {
			t.Errorf("%s: %s leads to no section", name, m[1])
		}
		row := regexp.MustCompile("(?m)^\\|.*`" + name + "`.*$").FindString(string(guide))
		linked := strings.Contains(row, "]("+place+")") || strings.Contains(row, "](#"+anchor+")")
		if !linked && strings.Contains(row, "](") {
			t.Errorf("%s: %s leads to another section than its row: %s", name, m[1], row)
		}
	}
}

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
	words := slices.Concat(health.HaltReasons(), health.WaitReasons(), processReasons(t))
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
