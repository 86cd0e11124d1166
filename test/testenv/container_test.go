package testenv

import (
	"bufio"
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
)

// needsContainers ends a test of containers where there can't be any, which is a
// failure only where they are demanded.
func needsContainers(t *testing.T) *docker {
	t.Helper()
	_, err := findRedisImage(t.Context())
	if errors.Is(err, errNotHere) {
		if os.Getenv(DemandVariable) != "containers" {
			t.Setenv(DemandVariable, "")
		}
		NotRun(t, "it needs containers: "+reasons([]error{err})[0])
	}
	require.NoError(t, err)
	d, err := findDocker()
	require.NoError(t, err)
	return d
}

func TestAnImageThatIsNotHereIsNotPulled(t *testing.T) {
	needsContainers(t)
	variable := "STANDINGS_TEST_X_IMAGE"
	begin := time.Now()
	_, err := findImage(t.Context(), variable, "example.invalid/redis:0")
	require.ErrorIs(t, err, errNotHere)
	require.ErrorContains(t, err, "docker pull example.invalid/redis:0")
	t.Setenv(variable, "example.invalid/redis:1")
	_, err = findImage(t.Context(), variable, "example.invalid/redis:0")
	require.NotErrorIs(t, err, errNotHere, "it was named")
	require.ErrorContains(t, err, variable+"=example.invalid/redis:1: Docker has no image")
	require.Less(t, time.Since(begin), 10*time.Second)
}

func TestWhatWasNamedComesBeforeWhatWasNot(t *testing.T) {
	t.Setenv(DemandVariable, "")
	t.Setenv(RedisImageVariable, "")
	t.Setenv(RedisServerVariable, "valkey-server")
	_, err := findRedisImage(t.Context())
	require.ErrorIs(t, err, errNotHere)
	require.EqualError(t, err, "STANDINGS_TEST_REDIS_SERVER is set, and STANDINGS_TEST_REDIS_IMAGE isn't: not on this machine")

	t.Setenv(RedisServerVariable, "")
	t.Setenv(RedisImageVariable, "valkey/valkey:8")
	require.ErrorIs(t, quickRedis(), errNotHere, "an image that was named comes before any program")
	t.Setenv(RedisServerVariable, "valkey-server")
	require.NotErrorIs(t, quickRedis(), errNotHere)
}

func TestContainersMakeNoNetwork(t *testing.T) {
	needsContainers(t)
	r, err := newRedisContainer(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(r.close)
	networks, err := r.private.(*redisContainer).container.Networks(t.Context())
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

// TestContainersGoWithAProcessThatIsKilled runs itself again as that process.
func TestContainersGoWithAProcessThatIsKilled(t *testing.T) {
	d := needsContainers(t)
	if os.Getenv(holdVariable) != "" {
		r, err := newRedisContainer(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, r.private.pause(), "a paused one as well")
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
	_ = process.Wait() // it was killed, which is what Wait would report
	require.NotEmpty(t, session, "it didn't start a container")
	require.Eventually(t, func() bool { return len(containersOf(t, d, session)) == 0 }, time.Minute, 100*time.Millisecond)
}

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
