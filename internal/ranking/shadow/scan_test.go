package shadow

import (
	"fmt"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking/lua"
)

// A cursor is valid only on the server that returned it. After a failed call another server may answer, on
// which members have other cursors.
func TestAScanBeginsAnewAfterACallThatFailed(t *testing.T) {
	f, r := rebuilding(t)
	members := make([]redis.Z, 0, 2000)
	for n := range 2000 {
		members = append(members, redis.Z{Score: float64(n + 1), Member: fmt.Sprint("m", n)})
	}
	require.NoError(t, f.Client.ZAdd(t.Context(), f.Key(0), members...).Err())
	var cursors []string
	f.Client.AddHook(eavesdropper(func(a []any) error {
		if a[1] != lua.Page.SHA || a[3] != f.Key(0) || a[7] != "scan" {
			return nil
		}
		cursors = append(cursors, a[8].(string))
		if len(cursors) == 2 {
			return io.EOF
		}
		return nil
	}))
	c := f.compare(t, r)
	require.GreaterOrEqual(t, len(cursors), 4)
	require.Equal(t, []string{"0", "0"}, []string{cursors[0], cursors[2]})
	require.NotEqual(t, "0", cursors[1])
	require.Equal(t, 2000+2+2+2, func() (n int) {
		for _, w := range c.Windows() {
			n += w.Differ
		}
		return n
	}())
}
