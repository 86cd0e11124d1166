package main

import (
	"testing"

	"github.com/standings/standings/cmd/consumer/clitest"
)

func TestTheJSONOfStatusBoardsAndTheConfigurationIsDocumented(t *testing.T) {
	clitest.Documented(t, "status", statusReport{})
	clitest.Documented(t, "top", boardReport{})
	clitest.Documented(t, "config", configReport{})
	clitest.Documented(t, "produce --check", checkReport{})
	clitest.Documented(t, "version", versionReport{})
}
