package version

import (
	"testing"

	"github.com/standings/standings/test/clitest"
)

func TestTheJSONIsDocumented(t *testing.T) { clitest.Documented(t, "version", report{}) }
