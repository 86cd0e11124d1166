package rebuild

// This file parses where a rebuild starts to read.

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

// parseFrom parses --from. A value that is neither a keyword nor a time is the name of a file.
func parseFrom(text string) (replay.From, error) {
	switch text {
	case "":
		return replay.From{From: start.FromWindow, SinceOrigin: true}, nil
	case "window":
		return replay.From{From: start.FromWindow}, nil
	case "earliest":
		return replay.From{From: start.FromEarliest}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return replay.From{From: start.FromTime, Time: at}, nil
	}
	file, err := os.Open(text)
	if err != nil {
		return replay.From{}, fmt.Errorf("--from %q is neither window, earliest, a time like 2026-11-01T00:00:00Z, nor a file that can be read: %w", text, err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	offsets, err := readOffsets(file)
	if err != nil {
		return replay.From{}, fmt.Errorf("--from %s: %w", text, err)
	}
	return replay.From{Offsets: offsets}, nil
}

// byteOrderMark appears at the start of files from some editors and spreadsheets.
const byteOrderMark = "\ufeff"

// readOffsets reads lines of topic,partition,offset, the format of kafka-consumer-groups. The keys of the
// result are fields of the ledger.
func readOffsets(r io.Reader) (map[string]int64, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	lines.TrimLeadingSpace = true
	all := map[string]int64{}
	for {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			if len(all) == 0 {
				return nil, errors.New("it has no line: want topic,partition,offset")
			}
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		n, _ := lines.FieldPos(0)
		if len(record) != 3 {
			return nil, fmt.Errorf("line %d has %d fields: want topic,partition,offset", n, len(record))
		}
		topic := strings.TrimSpace(strings.TrimPrefix(record[0], byteOrderMark))
		if err := config.CheckTopic(topic); err != nil {
			return nil, fmt.Errorf("line %d: %q %w", n, topic, err)
		}
		partition, err := strconv.ParseInt(strings.TrimSpace(record[1]), 10, 32)
		if err != nil || partition < 0 {
			return nil, fmt.Errorf("line %d: %q of %q is no partition", n, record[1], topic)
		}
		offset, err := strconv.ParseInt(strings.TrimSpace(record[2]), 10, 64)
		if err != nil || offset < 0 {
			return nil, fmt.Errorf("line %d: %q is no offset", n, record[2])
		}
		field := ledger.Partition{Topic: topic, Number: int(partition)}.String()
		if _, twice := all[field]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", n, field)
		}
		all[field] = offset
	}
}
