// Package page opens the page of the API's port in a browser, as built: does it show what the boards
// are, as they change, whatever members are called and whatever becomes of the server?
package page

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
