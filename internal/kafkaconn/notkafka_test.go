package kafkaconn

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
)

func TestAnAddressThatIsARedisIsNamed(t *testing.T) {
	withPassword := miniredis.RunT(t)
	withPassword.RequireAuth("secret")
	silent := server(t, func(c net.Conn) { // as Redis is until a line ends
		if line, err := bufio.NewReader(c).ReadString('\n'); err == nil && line == "*1\r\n" {
			_, _ = c.Write([]byte("+PONG\r\n"))
		}
	})
	for name, address := range map[string]string{"open": miniredis.RunT(t).Addr(), "with a password": withPassword.Addr(), "silent": silent} {
		for _, s := range []Settings{{}, {TLS: &tls.Config{MinVersion: tls.VersionTLS12}}} {
			t.Run(fmt.Sprintf("%s, TLS %v", name, s.TLS != nil), func(t *testing.T) {
				t.Parallel()
				err := s.Diagnose(t.Context(), address)
				require.ErrorContains(t, err, "Kafka at "+address+" answers as a Redis does: see kafka.brokers")
				require.ErrorAs(t, err, new(*Refusal))
			})
		}
	}
}
