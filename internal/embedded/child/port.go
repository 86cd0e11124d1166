package child

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are taken from below the range that kernels give to outgoing connections
// (from 32768 on Linux, 49152 elsewhere), so that a server which is stopped and
// started again finds its port free.
const (
	lowestPort  = 16384
	highestPort = 32767
)

// FreePort finds a TCP port of 127.0.0.1 that nobody listens on, and that it gives to
// nobody else while this process lives: a server that is down for a while finds its own
// free. Who doesn't ask here may take it before the server does: the caller tries again
// with another one, and makes sure that who answers there is its own server.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if last = reserve(port); last != nil {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("close port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, errors.Join(errors.New("no free port on 127.0.0.1"), last)
}

// reserve takes a port's number for as long as this process lives, by the UDP port of the
// same number, which no server here listens on: the kernel gives it to one process, and
// gives it back however that one ends.
func reserve(port int) error {
	held, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.ports = append(reserved.ports, held)
	return nil
}

// reserved keeps them: a connection that nothing refers to is closed.
var reserved struct {
	sync.Mutex
	ports []net.PacketConn
}
