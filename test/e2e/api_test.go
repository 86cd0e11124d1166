package e2e

// The API of a running consumer, as clients see it.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

// apiRow is a row of a response.
type apiRow struct {
	Rank   *int64           `json:"rank"`
	Member string           `json:"member"`
	Points *int64           `json:"points"`
	Fields map[string]int64 `json:"fields"`
	End    bool             `json:"end"` // set in the last line of an export
	Rows   int              `json:"rows"`
}

// apiPage is the response to a request for a page.
type apiPage struct {
	Window struct {
		Window  string `json:"window"`
		Members int64  `json:"members"`
	} `json:"window"`
	Status struct {
		State  string            `json:"state"`
		Ledger map[string]string `json:"ledger"`
	} `json:"status"`
	Standings []apiRow `json:"standings"`
}

// apiGet sends a GET and returns the response's body. It fails the test if the status is not 200.
func apiGet(t *testing.T, base, path string, query url.Values) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s %v: %d, %v: %s", path, query, answer.StatusCode, err, body)
	}
	return body
}

// pageIsWhole describes the first fault of a page that was read while events flowed: ranks must have no
// gap, each member appears once, and points do not rise.
func pageIsWhole(p *apiPage, offset int64) string {
	seen := map[string]bool{}
	for i, row := range p.Standings {
		switch {
		case row.Rank == nil || *row.Rank != offset+int64(i)+1:
			return fmt.Sprintf("row %d has rank %v", i, row.Rank)
		case seen[row.Member]:
			return fmt.Sprintf("%q is there twice", row.Member)
		case row.Points != nil && i > 0 && *row.Points > *p.Standings[i-1].Points:
			return fmt.Sprintf("row %d has more points than the one above", i)
		}
		seen[row.Member] = true
	}
	return ""
}

func TestTheAPIShowsWhatTheOracleHasWhileEventsFlow(t *testing.T) {
	t.Parallel()
	began := time.Now()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: harness.Ruled(began.Add(-time.Hour), began.Add(time.Hour))})
	place.Settings["api.listen"] = "127.0.0.1:0"
	opened := place.Start(t).Log.Await(t, within, "API's port open")
	base := fmt.Sprint("http://", opened.Fields["address"])

	ctx, stop := context.WithCancel(t.Context())
	var traffic sync.WaitGroup
	traffic.Go(func() {
		luck := rand.New(rand.NewPCG(3, 4))
		for n := 0; ctx.Err() == nil && n < 400; n++ {
			for i := range 15 {
				event := map[string]any{"event_id": fmt.Sprintf("%d-%d", n, i), "occurred_at": time.Now().Add(-time.Duration(luck.IntN(3600)) * time.Second).UTC().Format(time.RFC3339Nano)}
				place.Stream(context.WithoutCancel(ctx), t, harness.RuledEvent(luck, i%3, fmt.Sprintf("u%d", (i*13+n*7)%300), event))
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	read := 0
	for last := int64(0); read < 60; read++ {
		offset := int64(read % 5 * 20)
		var p apiPage
		decode(t, apiGet(t, base, "/v1/boards/global/periods/yearly/windows/current/standings", url.Values{"limit": {"50"}, "offset": {fmt.Sprint(offset)}}), &p)
		if wrong := pageIsWhole(&p, offset); wrong != "" {
			t.Fatal(wrong)
		}
		if p.Window.Members < last {
			t.Fatalf("%d members, and there were %d", p.Window.Members, last)
		}
		last = p.Window.Members
	}
	stop()
	traffic.Wait()
	place.Await()
	place.AwaitCaughtUp(t, within)
	place.Check(t) // Redis then equals the oracle

	compared := 0
	for name, members := range place.Boards(t) {
		part := strings.Split(name, ":")
		if len(part) != 3 {
			continue
		}
		w := "/v1/boards/" + part[0] + "/periods/" + part[1] + "/windows/" + part[2]
		type member struct {
			id    string
			score float64
		}
		var want []member
		for id, bits := range members {
			want = append(want, member{id, math.Float64frombits(bits)})
		}
		slices.SortFunc(want, func(a, b member) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id)) })

		lines := bytes.Split(bytes.TrimSpace(apiGet(t, base, w+"/export", nil)), []byte("\n"))
		if len(lines) != len(want)+1 {
			t.Fatalf("%s: %d rows of %d", name, len(lines)-1, len(want))
		}
		for i, line := range lines {
			var row apiRow
			if err := json.Unmarshal(line, &row); err != nil {
				t.Fatal(err)
			}
			switch {
			case i == len(want):
				if !row.End || row.Rows != len(want) {
					t.Fatalf("%s ends with %s", name, line)
				}
			case row.Member != want[i].id || *row.Rank != int64(i+1):
				t.Fatalf("%s: row %d is %s, want %v", name, i, line, want[i])
			case row.Points != nil && part[1] == "monthly" && *row.Points != int64(math.Floor(want[i].score)): // readable
				t.Fatalf("%s: row %d is %s, want %v", name, i, line, want[i])
			}
		}
		compared++
	}
	if compared < 10 {
		t.Fatalf("%d windows were compared", compared)
	}
	place.TerminateAll(t)
}
