package run

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }
