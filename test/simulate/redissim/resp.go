package redissim

// The RESP protocol: reads commands, and writes replies in version 2 or 3.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// A reply is nil, an int64, a string (bulk), a float64, a list ([]any), or one of these.
type (
	// Status is a simple string: OK.
	Status string
	// Error is an error with its code: "WRONGTYPE Operation …".
	Error string
	// Map is name, value, name, value, …: a flat list in version 2.
	Map []any
	// Pairs is a list of lists of two in version 3, and flat in version 2.
	Pairs []any
)

const ok = Status("OK")

// flat converts a reply to version 2.
func flat(reply any) any {
	switch r := reply.(type) {
	case Map:
		return []any(r)
	case Pairs:
		return []any(r)
	case float64:
		return formatScore(r)
	}
	return reply
}

// formatScore formats a score with 17 digits, which is exact, like every Redis before 7.2.
func formatScore(f float64) string { return digits(f, 17) }

// digits formats like C's %.<n>g.
func digits(f float64, n int) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	return strconv.FormatFloat(f, 'g', n, 64)
}

func appendReply(b []byte, reply any, proto int) []byte {
	if proto == 2 {
		reply = flat(reply)
	}
	switch r := reply.(type) {
	case nil:
		if proto == 2 {
			return append(b, "$-1\r\n"...)
		}
		return append(b, "_\r\n"...)
	case int64:
		return appendLine(b, ':', strconv.FormatInt(r, 10))
	case string:
		b = appendLine(b, '$', strconv.Itoa(len(r)))
		return append(append(b, r...), "\r\n"...)
	case float64:
		return appendLine(b, ',', formatScore(r))
	case Status:
		return appendLine(b, '+', string(r))
	case Error:
		return appendLine(b, '-', string(r))
	case []any:
		return appendAll(appendLine(b, '*', strconv.Itoa(len(r))), r, proto)
	case Map:
		return appendAll(appendLine(b, '%', strconv.Itoa(len(r)/2)), r, proto)
	case Pairs:
		b = appendLine(b, '*', strconv.Itoa(len(r)/2))
		for i := 0; i+1 < len(r); i += 2 {
			b = appendAll(append(b, "*2\r\n"...), r[i:i+2], proto)
		}
		return b
	}
	panic(fmt.Sprintf("redissim: %T is no reply", reply))
}

func appendAll(b []byte, all []any, proto int) []byte {
	for _, r := range all {
		b = appendReply(b, r, proto)
	}
	return b
}

func appendLine(b []byte, kind byte, text string) []byte {
	b = append(b, kind)
	b = append(b, text...)
	return append(b, "\r\n"...)
}

// The server's own limits, far above the sizes that the consumer sends.
const (
	mostArgs  = 1 << 20
	mostBytes = 64 << 20
)

var errProtocol = errors.New("expected an array of bulk strings")

// readCommand reads one command: an array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*', mostArgs)
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r, '$', mostBytes)
		if err != nil {
			return nil, unexpected(err)
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, unexpected(err)
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

// unexpected maps the end of a connection within a command to io.EOF, since no client is left to receive an error.
func unexpected(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

func readLength(r *bufio.Reader, kind byte, most int) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 4 || line[0] != kind || line[len(line)-2] != '\r' {
		return 0, errProtocol
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n < 0 || n > most {
		return 0, errProtocol
	}
	return n, nil
}
