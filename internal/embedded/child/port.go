package child

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are below the range that kernels use for outgoing connections (from 32768 on Linux, 49152 elsewhere), so that
// the port of a server that is stopped and started again is still free.
const (
	lowestPort  = 16384
	highestPort = 32767
)

// FreePort returns a TCP port of 127.0.0.1 on which no process listens. It returns a port only once while this process
// lives, so a server that is down for a while finds its port free. A process that does not use FreePort may still take
// the port before the server does. The caller must then try another port, and must verify that the server that answers
// is its own.
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

// reserve reserves a port's number as long as this process lives, by binding the UDP port with the same number, which
// no server here uses. The kernel gives that port to one process only, and releases it however the process ends.
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

// reserved keeps references to the connections, since an unreferenced connection is closed.
var reserved struct {
	sync.Mutex
	ports []net.PacketConn
}
