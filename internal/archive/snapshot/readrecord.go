package snapshot

// What records consist of: letters, numbers, texts.

import (
	"bytes"
	"encoding/binary"
	"io"
)

// letter is the next record's, of the next block if need be.
func (r *Reader) letter() (byte, error) {
	if r.state == atTheEnd {
		return 0, io.EOF
	}
	if len(r.records) == 0 {
		var err error
		if r.records, err = r.blocks.block(); err != nil {
			return 0, err
		}
	}
	return r.byte()
}

func (r *Reader) byte() (byte, error) {
	if len(r.records) == 0 {
		return 0, r.blocks.damaged("a record ends in the middle")
	}
	c := r.records[0]
	r.records = r.records[1:]
	return c, nil
}

func (r *Reader) number() (uint64, error) {
	n, length := binary.Uvarint(r.records)
	if length <= 0 {
		return 0, r.blocks.damaged("a record ends in the middle of a number, or the number is too large")
	}
	r.records = r.records[length:]
	return n, nil
}

func (r *Reader) text(most uint64) (string, error) {
	n, err := r.number()
	if err != nil {
		return "", err
	}
	if n > most {
		return "", r.blocks.damaged("a text of %d bytes, where %d are the most", n, most)
	}
	if n > uint64(len(r.records)) {
		return "", r.blocks.damaged("a record ends in the middle of a text")
	}
	text := string(bytes.Clone(r.records[:n]))
	r.records = r.records[n:]
	return text, nil
}
