package rebuild

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/test/clitest"
)

func TestABoardThatCanBeNoneIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	environ := []string{"STANDINGS_BOARDS=eu,us"}
	for _, try := range []struct{ board, says string }{
		{"eu,us", `--board "eu,us" is not a board name`},
		{"asia", "--board asia is not configured: use eu, us"},
	} {
		code, _, errs := clitest.Execute(t, Command, environ, "rebuild", "--board", "eu", "--board", try.board)
		if code != 2 || !strings.Contains(errs, try.says) {
			t.Errorf("exit code %d: %s", code, errs)
		}
	}
}

func TestAnInterruptedRebuildSaysWhatIsKnownOfTheBoards(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for unsure, says := range map[bool]string{false: "the boards are unchanged", true: "it is unknown whether the boards were swapped: all or none, unless partitions halt as torn, which another rebuild fixes; "} {
		err := explain(ctx, errors.Join(context.Canceled, io.EOF), &config.Config{}, &rebuild.Result{Unsure: unsure})
		if err == nil || !strings.Contains(err.Error(), says) || unsure && strings.Contains(err.Error(), "unchanged") {
			t.Errorf("unsure %t: %v", unsure, err)
		}
	}
}
