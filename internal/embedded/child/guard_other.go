//go:build !unix

package child

// On other systems only Stop and Kill end a child.

import (
	"os"
	"syscall"
)

var terminate = os.Kill

type guard struct{}

func attributes() *syscall.SysProcAttr { return nil }

func watch(int, string) guard { return guard{} }

func (guard) dismiss() {}
