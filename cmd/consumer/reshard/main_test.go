package reshard

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) {
	linger = 10 * time.Millisecond
	goleak.VerifyTestMain(m, testenv.LeakOptions()...)
}
