package sample

import (
	"testing"
	"time"
)

func TestWhatIsMadeUpIsKnownAgain(t *testing.T) {
	for _, o := range []Options{
		{Members: 200, Bad: 0.5, Boards: []string{"eu", "us"}, BoardsPerEvent: 2},
		{Members: 5_000_000, Bad: 0.5, Seed: 7, NoOccurredAt: true},
	} {
		o.Now = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		g, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		for range 20_000 {
			if e, _ := g.Next(nil); !Made(e.Key, e.Value) {
				t.Fatalf("%s=%s (%s)", e.Key, e.Value, e.Fault)
			}
		}
	}
}

func TestWhatOthersPublishIsNot(t *testing.T) {
	for _, r := range [][2]string{
		{"u42", `{"event_id":"01J00000000000000000000000","user_id":"u42","points":5}`},
		{"Kalobi", `{"user_id":"Kalobi","points":5}`},
		{"Kalobi", `{"event_id":"8f14e45f-ceea-467f-a9f1-1c2d3e4f5a6b","user_id":"Kalobi","points":5}`},
		{"player-12", `{"event_id":"01J00000000000000000000000","user_id":"player-12","points":5}`},
		{"", `{"user_id":"u42","points":5}`},
		{"", ``},
	} {
		if Made([]byte(r[0]), []byte(r[1])) {
			t.Errorf("%s=%s is taken for made up", r[0], r[1])
		}
	}
}
