package topic

// Tests of docs/final-topic.md and docs/examples/payout.py against published records.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/test/testenv"
)

var (
	table = regexp.MustCompile("(?s)<!-- json: (\\w+) -->\n(.*?)\n\n")
	named = regexp.MustCompile("`(\\w+)`")

	reached = regexp.MustCompile(`"reached_at":"[^"]+"`)
)

func TestTheFieldsOfTheRecordsAreThoseThatAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/final-topic.md")
	require.NoError(t, err)
	documented := map[string][]string{}
	for _, m := range table.FindAllStringSubmatch(string(text), -1) {
		for _, row := range strings.Split(m[2], "\n")[2:] {
			for _, name := range named.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
				documented[m[1]] = append(documented[m[1]], name[1])
			}
		}
	}
	require.Len(t, documented, 3)
	for _, rule := range []string{"", finaltest.ByRule} {
		f := newFixture(t, testenv.Kafka(t), 1, rule, 1)
		f.Fill(10)
		f.MakeFinal()
		require.NoError(t, f.publisher().Pass(t.Context()))
		f.published(1)
		for _, r := range f.read(kgo.ReadCommitted()) {
			var v map[string]any
			require.NoError(t, json.Unmarshal(r.Value, &v))
			want := documented[v["type"].(string)]
			if rule == "" && v["type"] == "standing" {
				want = slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name == "fields" })
			}
			require.ElementsMatch(t, want, slices.Collect(maps.Keys(v)), string(r.Value))
		}
	}
}

// asLines returns records in the format of kcat -J.
func asLines(t *testing.T, records []*kgo.Record) string {
	t.Helper()
	var all strings.Builder
	for _, r := range records {
		var headers []string
		for _, h := range r.Headers {
			headers = append(headers, h.Key, string(h.Value))
		}
		line, err := json.Marshal(map[string]any{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset, "headers": headers, "key": string(r.Key), "payload": string(r.Value)})
		require.NoError(t, err)
		all.Write(line)
		all.WriteByte('\n')
	}
	return all.String()
}

func TestTheExampleOfAReaderPaysOutOnceAndOnlyWhatIsWhole(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		testenv.NotRun(t, "it needs python3")
	}
	pays := func(input string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), python, "../../../docs/examples/payout.py")
		c.Stdin = strings.NewReader(input)
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for _, rule := range []string{"", finaltest.ByRule} {
		f := newFixture(t, testenv.Kafka(t), 3, rule, 3)
		f.Fill(300)
		f.MakeFinal()
		require.NoError(t, f.publisher().Pass(t.Context()))
		forget(f, f.Listed()+":1") // it is published again
		require.NoError(t, f.publisher().Pass(t.Context()))
		require.Len(t, f.times(1, 2), 2)
		records := f.read(kgo.ReadCommitted())
		all := asLines(t, records)
		if kcat, err := exec.LookPath("kcat"); err == nil {
			out, err := exec.CommandContext(t.Context(), kcat, "-b", f.kafka.Addr(), "-t", f.topic, "-C", "-o", "beginning", "-e", "-q", "-J", "-X", "isolation.level=read_committed").Output()
			require.NoError(t, err)
			all = string(out)
		}
		want := ""
		for i, row := range f.Shown()[:3] {
			member := exec.CommandContext(t.Context(), python, "-c", "import sys, json; print(repr(json.loads(sys.argv[1])), end='')", string(quoted(row.Member)))
			text, err := member.Output()
			require.NoError(t, err)
			want += fmt.Sprintf("%s %s: %d coins for %s\n", f.Board, f.Window.Name, []int{500, 200, 100}[i], text)
		}
		require.Equal(t, want, pays(all))

		once := records[:len(records)/2]
		require.Equal(t, want, pays(asLines(t, once)))
		require.Empty(t, pays(asLines(t, once[1:])), "its header was before")
		require.Empty(t, pays(asLines(t, once[:200])), "its trailer is to come")
		require.Contains(t, pays(asLines(t, slices.Concat(once[:5], once[6:]))), "299 standings", "one is missing")
		once[8].Value = reached.ReplaceAll(once[8].Value, []byte(`"reached_at":"2000-01-01T00:00:00.000Z"`))
		require.Contains(t, pays(asLines(t, once)), "which isn't what was published")
	}
}
