package reshard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The record that the next seal must know is kept, whichever comes first.
func TestTheLaterOfTwoRecordsOfASealIsKept(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", `{"at":7,"revision":1}`, `{"at":7,"revision":1}`},
		{`{"at":7,"revision":1}`, `{"at":7,"revision":1}`, `{"at":7,"revision":1}`},
		{`{"at":9,"revision":1}`, `{"at":7,"revision":2}`, `{"at":7,"revision":2}`},
		{`{"at":7,"revision":1}`, `{"at":10,"revision":1}`, `{"at":10,"revision":1}`},
		{`{"at":7,"revision":9}`, `{"at":7,"revision":10}`, `{"at":7,"revision":10}`},
		{`{"at":7,"revision":2,"why":"why"}`, `{"at":7,"reopened":8,"revision":2,"why":"why"}`, `{"at":7,"reopened":8,"revision":2,"why":"why"}`},
		{`{"at":7,"reopened":8,"revision":2,"why":"why"}`, `{"at":7,"reopened":9,"revision":2,"why":"a"}`, `{"at":7,"reopened":9,"revision":2,"why":"a"}`},
		{"damaged", `{"at":7,"revision":1}`, `{"at":7,"revision":1}`},
		// If both records name the same missed events, these are known.
		{`{"at":7,"passed":[[3,4]],"revision":2}`, `{"at":7,"passed":[[3,4]],"revision":2}`, `{"at":7,"passed":[[3,4]],"revision":2}`},
		{`{"at":7,"passed":[[3,4]],"revision":2}`, `{"at":7,"passed":[[3,4]],"reopened":8,"revision":2,"why":"why"}`, `{"at":7,"passed":[[3,4]],"reopened":8,"revision":2,"why":"why"}`},
		{`{"at":7,"revision":2,"why":"why"}`, `{"at":7,"passed":[[3,4]],"reopened":8,"revision":2,"why":"me"}`, `{"at":7,"passed":[[0,4]],"reopened":8,"revision":2,"why":"me"}`},
		{`{"at":7,"passed":[[3,4]],"revision":2}`, `{"at":8,"passed":[[3,5]],"revision":2}`, `{"at":8,"passed":[[0,5]],"revision":2}`},
		{`{"at":7,"passed":[[3,4]],"revision":2}`, `{"at":8,"revision":2,"why":"why"}`, `{"at":8,"passed":[[0,4]],"revision":2,"why":"why"}`},
	} {
		require.Equal(t, c.want, laterSeal(c.a, c.b), "%q and %q", c.a, c.b)
		require.Equal(t, c.want, laterSeal(c.b, c.a), "%q and %q", c.b, c.a)
	}
}
