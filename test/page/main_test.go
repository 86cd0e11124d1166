// Package page tests the page of the API's port in a browser, with the built consumer. The page must show the
// boards as they change, for all names of members and through failures of the server.
package page

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
