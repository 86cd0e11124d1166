package demo

import (
	"testing"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }
