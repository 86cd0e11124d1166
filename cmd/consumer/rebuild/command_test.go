package rebuild

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/test/clitest"
)

func TestAWrongCommandLineIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	environ := []string{"STANDINGS_BOARDS=eu,us"}
	for args, says := range map[string]string{
		"--board eu --board eu,us": `--board "eu,us" is not a board name`,
		"--board eu --board asia":  "--board asia is not configured: use eu, us",
		"--from latest":            `--from "latest" must be window, earliest, or a time`,
		"--from 2026-11-01":        `--from "2026-11-01" must be`,
		"--limit 0":                "--limit must be 1 to 1000000",
		"--max-hold 1ms":           "--max-hold must be 100ms to 1m",
	} {
		code, _, errs := clitest.Execute(t, Command, environ, append([]string{"rebuild"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, says)
	}
	from, err := parseFrom("2026-11-01T00:00:00+01:00")
	require.NoError(t, err)
	require.Equal(t, start.FromTime, from.From)
	require.True(t, from.Time.Equal(time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)))
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
