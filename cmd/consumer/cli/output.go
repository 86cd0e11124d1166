package cli

// A command's output in a file, which is there once it is complete.

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

const outputBuffer = 64 << 10

// Output is what a command writes to: stdout where path is empty, else a file beside that of the
// path, which flag names. Finish ends it with the error that the command went by: without one the file is on
// the disk and gets its name, else it is removed.
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
