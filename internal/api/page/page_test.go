package page

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// most is the maximum total size of all files, uncompressed.
const most = 60_000

// elsewhere serves paths that are not the page's.
var elsewhere = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Elsewhere", r.URL.Path)
	w.WriteHeader(http.StatusTeapot)
})

func ask(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(elsewhere).ServeHTTP(w, r)
	return w
}

// paths maps the files' names to their URL paths.
func paths(t *testing.T) map[string]string {
	t.Helper()
	all, err := fs.ReadDir(files, "files")
	require.NoError(t, err)
	of := map[string]string{}
	for _, entry := range all {
		of[entry.Name()] = "/page/" + entry.Name()
	}
	of[index] = "/"
	return of
}

func TestThePageIsSmall(t *testing.T) {
	sum := 0
	for _, path := range paths(t) {
		sum += ask(http.MethodGet, path).Body.Len()
	}
	require.Greater(t, sum, 10_000)
	require.LessOrEqual(t, sum, most)
}

func TestEveryFileIsServedWithItsTypeAndPolicy(t *testing.T) {
	kinds := map[string]string{"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	for name, path := range paths(t) {
		t.Run(name, func(t *testing.T) {
			answer := ask(http.MethodGet, path)
			text := answer.Body.Bytes()
			require.Equal(t, http.StatusOK, answer.Code)
			_, ext, _ := strings.Cut(name, ".")
			require.Equal(t, kinds[ext], answer.Header().Get("Content-Type"))
			require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
			require.Equal(t, "no-referrer", answer.Header().Get("Referrer-Policy"))
			require.Equal(t, "no-cache", answer.Header().Get("Cache-Control"))
			for _, directive := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
				"frame-ancestors 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
				require.Contains(t, strings.Split(answer.Header().Get("Content-Security-Policy"), "; "), directive)
			}
			require.NotContains(t, answer.Header().Get("Content-Security-Policy"), "unsafe")
			require.Equal(t, strconv.Itoa(len(text)), answer.Header().Get("Content-Length"))

			tag := answer.Header().Get("ETag")
			require.NotEmpty(t, tag)
			again := ask(http.MethodGet, path, "If-None-Match", tag)
			require.Equal(t, http.StatusNotModified, again.Code)
			require.Zero(t, again.Body.Len())
			require.NotEmpty(t, again.Header().Get("Content-Security-Policy"))
			require.Equal(t, http.StatusOK, ask(http.MethodGet, path, "If-None-Match", `"another"`).Code)

			compressed := ask(http.MethodGet, path, "Accept-Encoding", "br, gzip")
			require.Equal(t, "gzip", compressed.Header().Get("Content-Encoding"))
			require.Equal(t, "Accept-Encoding", compressed.Header().Get("Vary"))
			z, err := gzip.NewReader(compressed.Body)
			require.NoError(t, err)
			plain, err := io.ReadAll(z)
			require.NoError(t, err)
			require.Equal(t, text, plain)
			require.Empty(t, ask(http.MethodGet, path, "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"))
		})
	}
}

func TestMethodsAndPathsOfThePage(t *testing.T) {
	server := httptest.NewServer(Handler(elsewhere))
	defer server.Close()
	head, err := http.Head(server.URL + "/")
	require.NoError(t, err)
	require.NoError(t, head.Body.Close())
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Positive(t, head.ContentLength)

	for _, path := range []string{"/", "/page/main.js"} {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodOptions} {
			answer := ask(method, path)
			require.Equal(t, http.StatusMethodNotAllowed, answer.Code)
			require.Equal(t, "GET, HEAD", answer.Header().Get("Allow"))
		}
	}
	for _, path := range []string{"/v1/boards", "/page/", "/page", "/page/page.go", "/page/index.html", "/index.html", "/page/main.js/", "/favicon.ico"} {
		answer := ask(http.MethodGet, path)
		require.Equal(t, http.StatusTeapot, answer.Code, path)
		require.Equal(t, path, answer.Header().Get("X-Elsewhere"))
	}
}

// The files contain nothing that a policy of 'self' refuses, no request to another host, and no use of text as
// markup.
func TestFilesHaveNothingThatThePolicyRefuses(t *testing.T) {
	of := paths(t)
	for name, path := range of {
		text := ask(http.MethodGet, path).Body.String()
		for _, pattern := range []string{`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`, `(?i) style=`, `(?i)\son[a-z]+="`,
			`https?://(?:[^w]|w[^w])`, `(?i)javascript:`} {
			require.NotRegexp(t, pattern, text, name)
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"#]+)"|from '([^']+)'`).FindAllStringSubmatch(text, -1) {
			target := m[1] + m[2]
			if target == "v1/boards" {
				continue
			}
			target = strings.TrimPrefix(strings.TrimPrefix(target, "page/"), "./")
			require.Contains(t, of, target, "%s needs it", name)
		}
	}
}
