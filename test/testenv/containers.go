package testenv

// Servers in containers. Only cmd/testenv links Docker's client. It starts containers for itself and for the
// tests that it runs; these request them over a socket.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// ContainersVariable is the path of the socket on which cmd/testenv accepts requests for containers.
const ContainersVariable = "STANDINGS_TEST_CONTAINERS"

// RedisImage is the default image of Redis.
const RedisImage = "redis:7.0"

// ContainerRequest requests a server: POST /kafka or /redis. GET /image checks whether it could be started.
type ContainerRequest struct {
	Image    string
	Settings map[string]string // for Kafka, in addition to the default settings; they take precedence
	Args     []string          // for Redis, in addition to the default arguments
}

// ContainerServer is the answer to a ContainerRequest. If the machine has no daemon or lacks the image, the
// answer is 404 with a text that explains which.
type ContainerServer struct {
	Path    string // requests to the server: POST path/start, stop, kill, pause, resume, remove; GET path/log
	Address string // host:port
	Name    string // includes the version and the image
}

func kafkaImage() (string, error) {
	return imageOf(KafkaImageVariable, KafkaJarsVariable, "apache/kafka:"+wantedKafka())
}

func redisImage() (string, error) {
	return imageOf(RedisImageVariable, RedisServerVariable, RedisImage)
}

// imageOf returns the image that the environment names, or the default.
func imageOf(variable, other, usual string) (string, error) {
	if err := instead(variable, other, "containers"); err != nil {
		return "", err
	}
	return cmp.Or(os.Getenv(variable), usual), nil
}

func containerKafka(ctx context.Context) (*KafkaServer, error) { return newKafkaContainer(ctx, nil) }

func newKafkaContainer(ctx context.Context, settings map[string]string) (*KafkaServer, error) {
	image, err := kafkaImage()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kafkaStart)
	defer cancel()
	s, err := startContainer(ctx, "/kafka", KafkaImageVariable, ContainerRequest{Image: image, Settings: settings})
	if err != nil {
		return nil, err
	}
	node := &containerNode{path: s.Path}
	k := newKafka(s.Address, s.Name, Container, node.remove)
	k.private = node
	return k, nil
}

func containerRedis(ctx context.Context) (*RedisServer, error) { return newRedisContainer(ctx, nil) }

func newRedisContainer(ctx context.Context, args []string) (*RedisServer, error) {
	image, err := redisImage()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, containerCall)
	defer cancel()
	s, err := startContainer(ctx, "/redis", RedisImageVariable, ContainerRequest{Image: image, Args: args})
	if err != nil {
		return nil, err
	}
	node := &containerNode{path: s.Path}
	r := newRedis(s.Address, s.Name, Container, node.remove)
	r.private = node
	return r, nil
}

func startContainer(ctx context.Context, path, variable string, request ContainerRequest) (s ContainerServer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return s, err
	}
	answer, err := callContainers(ctx, http.MethodPost, path, body)
	if err != nil {
		return s, unlessNamed(variable, err)
	}
	return s, json.Unmarshal(answer, &s)
}

// hasImage returns nil if a container of the image can be started.
func hasImage(ctx context.Context, variable, image string) error {
	body, err := json.Marshal(ContainerRequest{Image: image})
	if err != nil {
		return err
	}
	_, err = callContainers(ctx, http.MethodGet, "/image", body)
	return unlessNamed(variable, err)
}

// unlessNamed turns a missing image into a failure if the environment names it: otherwise the tests would
// silently run on another server.
func unlessNamed(variable string, err error) error {
	if named := os.Getenv(variable); named != "" && errors.Is(err, errNotHere) {
		return fmt.Errorf("%s=%s: %s", variable, named, reasons([]error{err})[0])
	}
	return err
}

// containerCall limits a call that does not start a Kafka. cmd/testenv has its own limits.
const containerCall = 2 * time.Minute

// callContainers sends one request on its own connection, so that no goroutine is left.
func callContainers(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	socket := os.Getenv(ContainersVariable)
	if socket == "" {
		return nil, fmt.Errorf("no containers: make test starts them where it finds Docker: %w", errNotHere)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://containers"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", ContainersVariable, socket, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", bytes.TrimSpace(answer), errNotHere)
	case response.StatusCode != http.StatusOK:
		return nil, errors.New(string(bytes.TrimSpace(answer)))
	}
	return answer, nil
}

// containerNode is a private Kafka or Redis in a container.
type containerNode struct{ path string }

func (n *containerNode) do(verb string) error {
	_, err := n.call(http.MethodPost, verb, nil)
	return err
}

func (n *containerNode) call(method, what string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), containerCall)
	defer cancel()
	return callContainers(ctx, method, n.path+"/"+what, body)
}

func (n *containerNode) start(ctx context.Context) error {
	_, err := callContainers(ctx, http.MethodPost, n.path+"/start", nil)
	return err
}

func (n *containerNode) stop() error   { return n.do("stop") }
func (n *containerNode) kill() error   { return n.do("kill") }
func (n *containerNode) pause() error  { return n.do("pause") }
func (n *containerNode) resume() error { return n.do("resume") }
func (n *containerNode) remove()       { _ = n.do("remove") } // on failure, cmd/testenv removes it when it ends

func (n *containerNode) log() string {
	text, err := n.call(http.MethodGet, "log", nil)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (n *containerNode) dump() ([]byte, error) { return n.call(http.MethodGet, "dump", nil) }

func (n *containerNode) setDump(dump []byte) error {
	if dump == nil {
		_, err := n.call(http.MethodDelete, "dump", nil)
		return err
	}
	_, err := n.call(http.MethodPut, "dump", dump)
	return err
}

func (n *containerNode) spoilDumps() error { return n.do("spoil") }
