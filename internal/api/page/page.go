// Package page serves the web page at / of the API's port, which shows live boards in a browser. Its files are
// embedded in the program. All data comes from the API.
//
//	GET /               the page
//	GET /page/{file}    its other files
//
// The files are the same for all users and contain no data, so they require no token. If the API requires a token,
// the page asks the user for it.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"

	v1 "github.com/standings/standings/internal/api/v1"
)

//go:embed files
var files embed.FS

// index is the file at /.
const index = "index.html"

// policy allows the page only its own modules and styles, and requests to its own server. If a member id got into
// the document as markup, the policy would prevent it from running code; the last two directives also prevent such
// assignments.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types maps extensions to content types. The machine's own table may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is one of the page's files, uncompressed and compressed.
type file struct {
	kind    string
	tag     string
	text    []byte
	gzipped []byte
}

// Handler serves the page, and passes all other paths to next.
func Handler(next http.Handler) http.Handler {
	all, err := fs.ReadDir(files, "files")
	if err != nil {
		panic(err) // cannot fail: the files are embedded
	}
	mux := http.NewServeMux()
	mux.Handle("/", next)
	for _, entry := range all {
		f, err := read(entry.Name())
		if err != nil {
			panic(err)
		}
		if entry.Name() == index {
			mux.Handle("/{$}", f)
		} else {
			mux.Handle("/page/"+entry.Name(), f)
		}
	}
	return mux
}

func read(name string) (*file, error) {
	text, err := files.ReadFile("files/" + name)
	if err != nil {
		return nil, err
	}
	f := &file{kind: types[path.Ext(name)], tag: fmt.Sprintf(`W/"%016x"`, xxhash.Sum64(text)), text: text}
	if f.kind == "" {
		return nil, fmt.Errorf("%s has an unlisted type", name)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	f.gzipped = b.Bytes()
	return f, nil
}

// ServeHTTP sends the file.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the page takes GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Cache-Control", "no-cache") // caches revalidate it at each use, so a new version shows at once
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	if v1.Matches(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	body := f.text
	if v1.TakesGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // net/http drops the body for HEAD; the client may have disconnected
}
