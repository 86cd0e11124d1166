package child

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are below the range that kernels use for outgoing connections (from 32768 on Linux, 49152
// elsewhere), so that a server that is stopped and started again finds its port free.
const (
	lowestPort  = 16384
	highestPort = 32767
)

// FreePort returns a TCP port of 127.0.0.1 on which no process listens. No other call of FreePort returns
// the same port while this process lives, so a server that is down for a while finds its port free. A
// process that does not use FreePort may take the port first. The caller must then try another port, and
// must check that its own server answers.
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

// reserve reserves a port number while this process lives. It opens the UDP port of the same number, on
// which no server here listens: the kernel gives it to one process, and frees it however that process ends.
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

// reserved keeps references to the connections: an unreferenced connection is closed.
var reserved struct {
	sync.Mutex
	ports []net.PacketConn
}
