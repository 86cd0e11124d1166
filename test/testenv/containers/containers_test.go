//go:build !nodocker

package containers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needsContainers reports the test as not run if the machine has no containers. That is a failure only if
// containers are demanded.
func needsContainers(t *testing.T) (*docker, string) {
	t.Helper()
	image := cmp.Or(os.Getenv(testenv.RedisImageVariable), testenv.RedisImage)
	_, err := findImage(t.Context(), image)
	if errors.Is(err, errNotHere) {
		if os.Getenv(testenv.DemandVariable) != "containers" {
			t.Setenv(testenv.DemandVariable, "")
		}
		testenv.NotRun(t, "it needs containers: "+err.Error())
	}
	require.NoError(t, err)
	d, err := findDocker()
	require.NoError(t, err)
	return d, image
}

func TestAnImageThatIsNotHereIsNotPulled(t *testing.T) {
	needsContainers(t)
	begin := time.Now()
	_, err := findImage(t.Context(), "example.invalid/redis:0")
	require.ErrorIs(t, err, errNotHere)
	require.ErrorContains(t, err, "docker pull example.invalid/redis:0")
	require.Less(t, time.Since(begin), 10*time.Second)
}

func TestContainersMakeNoNetwork(t *testing.T) {
	_, image := needsContainers(t)
	r, err := newRedis(t.Context(), image, nil)
	require.NoError(t, err)
	t.Cleanup(r.remove)
	networks, err := r.container.Networks(t.Context())
	require.NoError(t, err)
	require.Len(t, networks, 1)
	require.Contains(t, []string{"bridge", "podman"}, networks[0], "what each daemon has by itself")
}

func TestASettingOfKafkaIsAVariableOfItsContainer(t *testing.T) {
	for setting, variable := range map[string]string{
		"message.max.bytes": "KAFKA_MESSAGE_MAX_BYTES",
		"listener.name.a_b.scram-sha-256.sasl.jaas.config": "KAFKA_LISTENER_NAME_A__B_SCRAM___SHA___256_SASL_JAAS_CONFIG",
	} {
		require.Equal(t, variable, kafkaVariableOf(setting))
	}
}

const holdVariable = "STANDINGS_TEST_HOLD"

// TestContainersGoWithAProcessThatIsKilled runs this test program again as the process to kill.
func TestContainersGoWithAProcessThatIsKilled(t *testing.T) {
	d, image := needsContainers(t)
	if os.Getenv(holdVariable) != "" {
		r, err := newRedis(t.Context(), image, nil)
		require.NoError(t, err)
		require.NoError(t, r.pause(), "a paused one as well")
		fmt.Println("\nsession " + guardSession)
		select {}
	}
	self, err := os.Executable()
	require.NoError(t, err)
	process := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	process.Env = append(os.Environ(), holdVariable+"=1")
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	session := ""
	for lines := bufio.NewScanner(out); session == "" && lines.Scan(); {
		session, _ = strings.CutPrefix(lines.Text(), "session ")
		if session == lines.Text() {
			session = ""
		}
	}
	require.NoError(t, process.Process.Kill())
	_ = process.Wait() // Wait reports that it was killed
	require.NotEmpty(t, session, "it didn't start a container")
	require.Eventually(t, func() bool { return len(containersOf(t, d, session)) == 0 }, time.Minute, 100*time.Millisecond)
}

func TestTheContainersOfAServiceGoWithIt(t *testing.T) {
	d, _ := needsContainers(t)
	s, err := Listen(t.Context())
	require.NoError(t, err)
	t.Setenv(testenv.ContainersVariable, s.Socket)
	t.Setenv(testenv.DemandVariable, "containers")
	t.Run("a test that removes nothing", func(t *testing.T) {
		require.NoError(t, testenv.PrivateRedis(kept{t}).Client(t).Ping(t.Context()).Err())
	})
	require.NotEmpty(t, containersOf(t, d, guardSession))
	s.Close()
	require.Empty(t, containersOf(t, d, guardSession))
	_, err = os.Stat(s.Socket)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// kept is a test that ends without its cleanup, like a test that is killed.
type kept struct{ *testing.T }

func (kept) Cleanup(func()) {}

func containersOf(t *testing.T, d *docker, session string) []string {
	t.Helper()
	defer d.idle()
	ctx, cancel := context.WithTimeout(context.Background(), dockerCall)
	defer cancel()
	list, err := d.provider.Client().ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", guardLabel+"="+session),
	})
	require.NoError(t, err)
	var ids []string
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return ids
}
