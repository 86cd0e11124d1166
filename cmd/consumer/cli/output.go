package cli

// This file writes a command's output to a file that appears under its name only when it is complete.

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

const outputBuffer = 64 << 10

// Output opens a command's output: stdout if path is empty, else a temporary file next to path. Errors name
// the flag. The command must call finish with its own error. If that is nil, finish syncs the file and
// renames it to path; otherwise it removes the file.
func Output(stdout io.Writer, flag, path string) (w io.Writer, finish func(error) error, err error) {
	if path == "" {
		to := bufio.NewWriterSize(stdout, outputBuffer)
		return to, func(err error) error { return errors.Join(err, to.Flush()) }, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, nil, Usagef("%s: %w", flag, err)
	}
	to := bufio.NewWriterSize(file, outputBuffer)
	return to, func(err error) error {
		if err == nil {
			err = to.Flush()
		}
		if err == nil {
			err = file.Sync()
		}
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err == nil {
			return os.Rename(file.Name(), path)
		}
		return errors.Join(err, os.Remove(file.Name()))
	}, nil
}
