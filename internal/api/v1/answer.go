package v1

// How a response is written: JSON, with an ETag, and compressed if the client accepts that.

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"

	"github.com/standings/standings/internal/reading"
)

// answer is the body of a successful response.
type answer struct {
	body any
	// shows is the window that the body shows. The ETag is computed from this view without its read times, which
	// differ at each read. So the body is encoded once, and not at all if the client already has it.
	shows *reading.View
	// reached is status.reached of the body, if it has that.
	reached *bool
	// tagged: the body shows no window, and its ETag is a hash of all its bytes.
	tagged bool
	// cache is the Cache-Control header. If it is empty, caches must revalidate the response at each use.
	cache string
}

const revalidate = "no-cache"

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// write sends the response.
func (a *answer) write(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", revalidate)
	if a.cache != "" {
		h.Set("Cache-Control", a.cache)
	}
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	if a.shows != nil && holds(w, r, tagOf(a.shows, a.reached)) {
		return nil
	}
	if err := encode(b, a.body); err != nil {
		return err
	}
	if a.tagged && holds(w, r, tagText(xxhash.Sum64(b.Bytes()))) {
		return nil
	}
	writeBody(w, r, b.Bytes())
	return nil
}

// holds sets the ETag. If the client already has that version, holds sends 304 and returns true.
func holds(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("ETag", tag)
	if !Matches(r.Header.Get("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

func encode(b *bytes.Buffer, v any) error {
	b.Reset()
	out := json.NewEncoder(b)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// Matches reports whether an If-None-Match header contains a tag.
func Matches(header, tag string) bool {
	if header == "" {
		return false
	}
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// leastCompressed is the shortest body that is compressed, in bytes.
const leastCompressed = 1 << 10

var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // cannot happen: the level is valid
	}
	return z
}}

// writeBody writes a body, compressed if the client accepts that.
func writeBody(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < leastCompressed || !TakesGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the client may have disconnected
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

// TakesGzip reports whether an Accept-Encoding header allows gzip: it names gzip or *, and the quality is not 0.
func TakesGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		if name = strings.TrimSpace(name); name != "gzip" && name != "*" {
			continue
		}
		quality, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
		q, err := strconv.ParseFloat(quality, 64)
		return !ok || err == nil && q > 0
	}
	return false
}
