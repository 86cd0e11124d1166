//go:build !unix

package child

// Elsewhere a child ends by Stop and Kill alone.

import (
	"os"
	"syscall"
)

var terminate = os.Kill

type guard struct{}

func attributes() *syscall.SysProcAttr { return nil }

func watch(int, string) guard { return guard{} }

func (guard) dismiss() {}
