package v1

// Request bodies. The API reads a body before the request takes a place in the limit on requests. A client that
// sends its body slowly, or never ends it, therefore holds only its connection and the announced number of bytes,
// for a few seconds.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"time"

	server "github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/reading"
)

const (
	// longestBody, in bytes, has room for 1,000 ids of 256 bytes, half of them escaped.
	longestBody    = 512 << 10
	longestBanBody = 16 << 10
	// mostBodies is the limit on the total size of all bodies being read, in bytes. Bodies about bans are not
	// included.
	mostBodies = 8 * longestBody
	// bodyWithin is how long a body may take to arrive.
	bodyWithin = 3 * time.Second
)

// readBody reads the body, if there is one. The caller must call done once it no longer needs the body.
func (a *api) readBody(q *request, o *operation, w http.ResponseWriter) (done func(), err error) {
	if q.ContentLength == 0 || q.Body == nil || q.Body == http.NoBody {
		return func() {}, nil
	}
	done = func() {}
	most := int64(longestBody)
	if o.bans {
		most = longestBanBody
	}
	announced := q.ContentLength
	if announced < 0 {
		announced = most
	}
	switch {
	case announced > most:
		err = problemf(tooLarge, "The body exceeds %d bytes", most)
	case !o.bans: // a request about bans has a token, and readers must not be able to block it
		done, err = a.take(a.limits.bodies, q.client, announced)
	}
	if err == nil {
		if err = q.receive(w, announced, most); err != nil {
			done()
		}
	}
	if err != nil {
		w.Header().Set("Connection", "close") // do not wait for the rest of the body
		return nil, err
	}
	return done, nil
}

// receive reads the body into q.sent.
func (q *request) receive(w http.ResponseWriter, announced, most int64) error {
	received := server.Receive(q.Context())
	defer received()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // net/http removes it after the body
	b := bytes.NewBuffer(make([]byte, 0, announced+bytes.MinRead))
	_, err := b.ReadFrom(io.LimitReader(q.Body, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problemf(bodyTooSlow, "The body did not arrive within %v", bodyWithin)
	case err != nil:
		return wrong("body", "The body cannot be read: %v", err)
	case int64(b.Len()) > most:
		return problemf(tooLarge, "The body exceeds %d bytes", most)
	}
	q.sent = b.Bytes()
	return nil
}

// body decodes the JSON body into to, and refuses unknown fields. like is an example for the error message.
func (q *request) body(to any, like string) error {
	in := json.NewDecoder(bytes.NewReader(q.sent))
	q.sent = nil
	in.DisallowUnknownFields()
	if err := in.Decode(to); err != nil {
		if p, ok := errors.AsType[*problem](err); ok {
			return p
		}
		return wrong("body", `The body must be %s: %v`, like, err)
	}
	if in.More() {
		return wrong("body", "The body must be a single JSON value")
	}
	return nil
}

// memberIDs are the ids of a lookup. Decoding stops at the first id above the limit.
type memberIDs []string

// UnmarshalJSON reads a list of ids.
func (m *memberIDs) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	begin, err := in.Token()
	if err != nil {
		return err
	}
	*m = nil
	switch begin {
	case json.Delim('['):
	case nil: // null is an empty list
		return nil
	default:
		return &json.UnmarshalTypeError{Value: "what is no list", Type: reflect.TypeFor[[]string]()}
	}
	for in.More() {
		if len(*m) == reading.MostMembers {
			return wrong("body", "members must have at most %d ids", reading.MostMembers)
		}
		var id string
		if err := in.Decode(&id); err != nil {
			return err
		}
		if err := checkMember("body", id); err != nil {
			return err
		}
		*m = append(*m, id)
	}
	return nil
}
