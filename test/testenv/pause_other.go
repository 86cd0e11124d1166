//go:build !unix

package testenv

import (
	"fmt"

	"github.com/standings/standings/internal/embedded/child"
)

func pause(*child.Process) error { return fmt.Errorf("pausing a process: %w", errNotHere) }

func resume(*child.Process) error { return nil }
