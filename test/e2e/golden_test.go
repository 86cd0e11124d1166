package e2e

// The examples of docs/rules.md: its configuration, events and boards.

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.yaml.in/yaml/v3"

	"github.com/standings/standings/test/harness"
)

// example has some events and the board that results from them: a heading, and a row for each member.
type example struct {
	board  string
	events []string
	head   []string
	rows   [][]string
}

// cells returns the cells of a table's row, without the backquotes of code.
func cells(line string) []string {
	var all []string
	for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
		all = append(all, strings.Trim(strings.TrimSpace(cell), "`"))
	}
	return all
}

// examples returns the document's examples: each block of events with the table after it.
func examples(t *testing.T, text string) (all []example) {
	t.Helper()
	pair := regexp.MustCompile("(?s)```json\n(.*?)```\n\n((?:\\|[^\n]*\n)+)")
	for _, m := range pair.FindAllStringSubmatch(text, -1) {
		e := example{events: strings.Split(strings.TrimSpace(m[1]), "\n")}
		var first struct{ Board string }
		decode(t, []byte(e.events[0]), &first)
		e.board = first.Board
		table := strings.Split(strings.TrimSpace(m[2]), "\n")
		e.head = cells(table[0])
		for _, line := range table[2:] {
			e.rows = append(e.rows, cells(line))
		}
		all = append(all, e)
	}
	return all
}

// documented returns the settings of the document's configuration.
func documented(t *testing.T, text string) map[string]string {
	t.Helper()
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(text)
	if block == nil {
		t.Fatal("rules.md has no configuration")
	}
	var config struct {
		Event  struct{ Fields map[string]string }
		Boards map[string]any
	}
	if err := yaml.Unmarshal([]byte(block[1]), &config); err != nil {
		t.Fatal(err)
	}
	boards, err := json.Marshal(config.Boards)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"boards": string(boards)}
	for name, path := range config.Event.Fields {
		settings["event.fields."+name] = path
	}
	return settings
}

// The events are applied twice: all at once, so that they are folded before Redis is called, and one by one,
// so that each one updates the standings of the others in Redis.
func TestTheExamplesOfTheRulesComeToTheBoardsBesideThem(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	settings := documented(t, string(document))
	for _, period := range []string{"weekly", "monthly", "yearly"} {
		settings["periods."+period+".retention"] = "36500d" // the examples have fixed dates
	}
	all := examples(t, string(document))
	if len(all) != 5 {
		t.Fatalf("%d examples were found: the pattern is wrong", len(all))
	}
	var turns [][]*kgo.Record // the first event of each example, then the second, …
	for _, e := range all {
		for i, value := range e.events {
			r := harness.Record(0, value)
			r.Timestamp = occurred(t, value).Add(time.Second)
			if i == len(turns) {
				turns = append(turns, nil)
			}
			turns[i] = append(turns[i], r)
		}
	}
	for name, parts := range map[string][][]*kgo.Record{"at once": {slices.Concat(turns...)}, "one by one": turns} {
		place := harness.New(t, harness.Options{Settings: settings})
		var consumer *harness.Consumer
		for _, records := range parts {
			var again []*kgo.Record // a published record belongs to the client
			for _, r := range records {
				again = append(again, &kgo.Record{Value: r.Value, Timestamp: r.Timestamp})
			}
			place.Publish(t, again...)
			if consumer == nil {
				consumer = place.Start(t)
			}
			place.AwaitCaughtUp(t, within)
		}
		for _, e := range all {
			shown := standings(t, place, e, "weekly", "2026-W47")
			want := dated(e.rows, e.head, occurred(t, e.events[0]).Format("2006-01-02T"))
			if fmt.Sprint(shown) != fmt.Sprint(want) {
				t.Errorf("%s: %s shows, by %v,\n%v\nand the document has\n%v", name, e.board, e.head, shown, want)
			}
		}
		consumer.Terminate(t)
		place.Check(t)
		place.CheckCounts(t)
	}
}

// occurred returns an event's time.
func occurred(t *testing.T, value string) time.Time {
	t.Helper()
	var event struct {
		Occurred time.Time `json:"occurred_at"`
	}
	decode(t, []byte(value), &event)
	return event.Occurred
}

// dated returns the rows with complete times.
func dated(rows [][]string, head []string, date string) (all [][]string) {
	for _, row := range rows {
		row = append([]string(nil), row...)
		for i, name := range head {
			if name == "since" {
				row[i] = date + row[i] + ".000Z"
			}
		}
		all = append(all, row)
	}
	return all
}

// standings returns a board as the command and Redis show it, in the columns of an example's table.
func standings(t *testing.T, place *harness.Place, e example, period, window string) (rows [][]string) {
	t.Helper()
	var said struct {
		Standings []struct {
			Rank      int
			Member    string
			Fields    map[string]int64
			ReachedAt string `json:"reached_at"`
		}
	}
	decode(t, place.Command(t, "top", e.board, period, "--window", window, "--json"), &said)
	scores := place.Board(t, e.board+":"+period+":"+window)
	for _, s := range said.Standings {
		var row []string
		for _, name := range e.head {
			switch name {
			case "rank":
				row = append(row, strconv.Itoa(s.Rank))
			case "member":
				row = append(row, s.Member)
			case "since":
				row = append(row, s.ReachedAt)
			case "floor(score)":
				row = append(row, strconv.FormatFloat(math.Floor(math.Float64frombits(scores[s.Member])), 'f', -1, 64))
			default:
				row = append(row, strconv.FormatInt(s.Fields[name], 10))
			}
		}
		rows = append(rows, row)
	}
	return rows
}
