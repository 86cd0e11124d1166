package reshard

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/testenv"
)

// brief is the command, which leaves the old shards for a short time.
func brief(p *cli.Program) *cobra.Command { return command(p, 10*time.Millisecond) }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, testenv.LeakOptions()...)
}
