package v1

// How an answer is written: JSON, with an ETag, and compressed where that is asked for.

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

// answer is the body of an answer that is yes.
type answer struct {
	body any
	// shows is the window that the body shows. Its ETag is of that as it was read, but for when, which
	// is another each time; so the body is encoded once, and not at all for who has it already.
	shows *reading.View
	// reached is part of such a body, too.
	reached *bool
	// tagged: a body of no window has an ETag, which is of all its bytes.
	tagged bool
	// cache is Cache-Control; empty: whoever keeps it asks each time whether it still holds.
	cache string
}

const revalidate = "no-cache"

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// write writes it.
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

// holds sets the ETag, and answers who has that already.
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

// Matches reports whether a tag is among those of If-None-Match.
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

// leastCompressed is from how many bytes on compression is worth its while.
const leastCompressed = 1 << 10

var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is one
	}
	return z
}}

// writeBody writes a body, compressed where the client takes that.
func writeBody(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < leastCompressed || !TakesGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // whoever asked may be gone
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

// TakesGzip reads Accept-Encoding: gzip is taken where it is named and its quality isn't 0.
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
