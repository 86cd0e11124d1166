package docs

// redis.mts, run by node without its types.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/standings/standings/docs/examples"
	"github.com/standings/standings/test/testenv"
)

// stripped is TypeScript without types: with the few forms that redis.mts has of them.
func stripped(text string) string {
	for _, form := range []struct{ types, rest string }{
		{`(?m)^import .*$`, ""},
		{`(?m)^interface .*$`, ""},
		{`: (string|number|Layout|Field|Field\[\]|Record<string, number>|ReturnType<typeof createClient>)([,)=;{ ])`, "$2"},
		{`<"typed">`, ""},
		{`([\w\])])!([,.;)])`, "$1$2"},
	} {
		text = regexp.MustCompile(form.types).ReplaceAllString(text, form.rest)
	}
	return text
}

// nodeProgram reads boards as JSON, each with what Redis returns of it, and writes what top makes of it.
const nodeProgram = `
const answers = [];
for (const board of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  const sent = [];
  const call = (command) => (...args) => { sent.push([command, ...args]); return multi; };
  const multi = {
    get: call("get"), hGet: call("hGet"), zRangeWithScores: call("zRangeWithScores"),
    exec: async () => [board.schema, board.line, board.rows],
  };
  answers.push(top({ multi: () => multi }, board.prefix, "eu", board.period, "2026-W47", 100).then((rows) => ({ rows, sent })));
}
Promise.all(answers).then((all) => console.log(JSON.stringify(all)));
`

type nodeRow struct {
	Value string  `json:"value"`
	Score float64 `json:"score"`
}

type nodeBoard struct {
	Prefix string    `json:"prefix"`
	Period string    `json:"period"`
	Schema string    `json:"schema"`
	Line   string    `json:"line"`
	Rows   []nodeRow `json:"rows"`
}

type nodeAnswer struct {
	Rows []struct {
		Member            string
		Points, ReachedAt int64
		Fields            map[string]int64
	}
	Sent [][]any
}

func TestTheTypeScriptThatReadsRedisReadsABoard(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		testenv.NotRun(t, "it needs node")
	}
	client := startRedis(t)
	boards := ruledBoards(t)
	byLayout := map[examples.Layout]*exampleBoard{}
	for i, v := range vectors(t) {
		b := byLayout[v.layout]
		if b == nil {
			b = &exampleBoard{prefix: "lb-" + v.layout.Kind, period: "weekly", layout: v.layout}
			byLayout[v.layout], boards = b, append(boards, b)
		}
		b.scores = append(b.scores, v.score)
		b.want = append(b.want, examples.Row{Member: fmt.Sprintf("u%d", i), Points: v.points, ReachedAt: v.reachedAt})
	}
	var input []nodeBoard
	for _, b := range boards {
		b.write(t, client)
		key := b.prefix + ":{0}:"
		one := nodeBoard{
			Prefix: b.prefix, Period: b.period, Schema: client.Get(t.Context(), key+"schema").Val(),
			Line: client.HGet(t.Context(), key+"windows", b.listing()).Val(),
		}
		for i, score := range b.scores {
			one.Rows = append(one.Rows, nodeRow{b.want[i].Member, score})
		}
		input = append(input, one)
	}
	answers := runNode(t, node, stripped(exampleText(t, "redis.mts"))+nodeProgram, input)
	if len(answers) != len(boards) {
		t.Fatalf("%d boards of %d", len(answers), len(boards))
	}
	for i, b := range boards {
		key := b.prefix + ":{0}:"
		sent := fmt.Sprint([]any{"get", key + "schema"}, []any{"hGet", key + "windows", b.listing()}, []any{"zRangeWithScores", key + b.listing(), 0, 99, map[string]any{"REV": true}})
		if got := fmt.Sprint([]any{answers[i].Sent}...); got != "["+sent+"]" {
			t.Errorf("%s: the TypeScript sends %s, want %s", b.prefix, got, sent)
		}
		for j, row := range answers[i].Rows {
			if got := (examples.Row{Member: row.Member, Points: row.Points, ReachedAt: row.ReachedAt, Fields: row.Fields}); fmt.Sprint(got) != fmt.Sprint(b.want[j]) {
				t.Errorf("%s %s: the TypeScript reads %+v, want %+v", b.prefix, b.rule, got, b.want[j])
			}
		}
		if len(answers[i].Rows) != len(b.want) {
			t.Errorf("%s: %d rows of %d", b.prefix, len(answers[i].Rows), len(b.want))
		}
	}
}

func runNode(t *testing.T, node, program string, input any) (answers []nodeAnswer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reading.cjs")
	// The functions are exported; node runs them beside what calls them.
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(program, "\nexport ", "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), node, path)
	run.Stdin = strings.NewReader(string(text))
	var problems strings.Builder
	run.Stderr = &problems
	out, err := run.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, problems.String())
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}
