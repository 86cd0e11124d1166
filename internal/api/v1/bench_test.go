package v1

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
)

// BenchmarkReads answers requests about a board of 20,000 members without a network. It measures this process's
// time and allocations per request.
//
//	go test -run - -bench Reads -benchmem ./internal/api/v1
func BenchmarkReads(b *testing.B) {
	f := newFixture(b, 1, codec.Readable)
	var all []ranking.Standing
	for i := range 20_000 {
		all = append(all, f.standing("global", fmt.Sprintf("player-%07d", i), rand.Int64N(1000), rand.Int64N(100_000)))
	}
	f.put("global", all...)
	var members []string
	for i := range 50 {
		members = append(members, fmt.Sprintf(`"player-%07d"`, i*100))
	}
	for _, of := range []struct{ name, method, path, body string }{
		{"top10", http.MethodGet, "/standings?limit=10", ""},
		{"top100", http.MethodGet, "/standings?limit=100", ""},
		{"rank", http.MethodGet, "/members/player-0000123", ""},
		{"around", http.MethodGet, "/around?member=player-0000123", ""},
		{"lookup50", http.MethodPost, "/members/lookup", `{"members":[` + strings.Join(members, ",") + `]}`},
	} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				answer.Body = nil
				f.ServeHTTP(answer, httptest.NewRequest(of.method, w("global")+of.path, strings.NewReader(of.body)))
				require.Equal(b, http.StatusOK, answer.Code)
			}
		})
	}
}
