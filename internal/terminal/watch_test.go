package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

// watched returns what is shown, and when, if each look takes some time.
func watched(t *testing.T, every, takes, until time.Duration) string {
	t.Helper()
	var shown []string
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), until)
		defer cancel()
		begun, looks := time.Now(), 0
		err := Watch(ctx, every, func(ctx context.Context) int {
			looks++
			select {
			case <-time.After(takes):
			case <-ctx.Done():
			}
			return looks
		}, func(found *int, waited time.Duration) error {
			at := time.Since(begun)
			switch {
			case found != nil:
				shown = append(shown, fmt.Sprintf("%v: %d", at, *found))
			case waited > 0:
				shown = append(shown, fmt.Sprintf("%v: none for %v", at, waited))
			default:
				shown = append(shown, fmt.Sprintf("%v: again", at))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	return strings.Join(shown, ", ")
}

func TestWatchingLooksEverySoOftenAndSaysHowLongAnAnswerTakes(t *testing.T) {
	for want, got := range map[string]string{
		"100ms: 1, 1s: again, 1.6s: 2, 2s: again":                               watched(t, 1500*time.Millisecond, 100*time.Millisecond, 2500*time.Millisecond),
		"1s: none for 1s, 2s: none for 2s, 2.5s: 1, 3s: again, 4s: none for 1s": watched(t, 1500*time.Millisecond, 2500*time.Millisecond, 4900*time.Millisecond),
	} {
		if got != want {
			t.Errorf("shown is\n%s\nwant\n%s", got, want)
		}
	}
}

func TestALookThatIsInterruptedIsNotShown(t *testing.T) {
	for range 100 { // select chooses at random between two ready channels
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := Watch(ctx, time.Second, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}, func(found *error, _ time.Duration) error {
				if found != nil {
					return *found
				}
				time.Sleep(5 * time.Second) // drawing takes so long that the end comes meanwhile
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWatchingEndsWithWhatCanNotBeShown(t *testing.T) {
	full := errors.New("no space left on device")
	if err := Watch(t.Context(), time.Hour, func(context.Context) int { return 1 }, func(*int, time.Duration) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}

func TestWrappedTextIsAllThereAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab 漢é\n")), 0, 80, -1).Draw(t, "text")
		width := rapid.IntRange(20, 40).Draw(t, "width")
		lines := Wrapped(text, width)
		for _, line := range lines {
			if uniseg.StringWidth(line) > width {
				t.Fatalf("%q in %d", line, width)
			}
		}
		joined := strings.Join(lines, " ")
		if !strings.Contains(joined, "…") && strings.Join(strings.Fields(joined), " ") != strings.Join(strings.Fields(text), " ") {
			t.Fatalf("%q became %q", text, lines)
		}
	})
	got := strings.Join(Wrapped("points/1 is halted (gap): events are\x1b gone\n  to do: restore them all\n", 22), "\n")
	if want := "points/1 is halted\n  (gap): events\n  are\\x1b gone\n  to do: restore them\n  all"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestWhatDoesNotFitIsCounted(t *testing.T) {
	lines := []string{"a", "b", "c", "d"}
	for height, want := range map[int]string{5: "a b c d", 4: "a b c d", 3: "a b … 2 more lines", 2: "a … 3 more lines", 1: "a", 0: ""} {
		if got := strings.Join(Fit(lines, 80, height), " "); got != want {
			t.Errorf("%d: %s", height, got)
		}
	}
	if strings.Join(lines, " ") != "a b c d" {
		t.Error("lines of the caller were changed")
	}
}
