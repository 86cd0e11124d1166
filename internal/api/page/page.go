// Package page is the page at / of the API's port: boards that move, for whoever opens it in a
// browser. Its files are part of the program, and it shows what the API answers and nothing else.
//
//	GET /               the page
//	GET /page/{file}    what it is made of
//
// The files are the same for everybody and hold no data, so that they need no token: the page asks
// for one where the API does.
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

// policy lets the page run its own modules and styles, and ask its own server. A member's id that got
// into the document as more than text could run nothing, by the last two directives not even try.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are by name rather than the machine's, which may have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is one of the page's, as it is and compressed.
type file struct {
	kind    string
	tag     string
	text    []byte
	gzipped []byte
}

// Handler answers for the page, and leaves every other path to next.
func Handler(next http.Handler) http.Handler {
	all, err := fs.ReadDir(files, "files")
	if err != nil {
		panic(err) // they are in the program
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

// ServeHTTP answers with the file.
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
	h.Set("Cache-Control", "no-cache") // kept, and asked about each time: a new version shows at once
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
	_, _ = w.Write(body) // of a HEAD it is left out; whoever asked may be gone
}
