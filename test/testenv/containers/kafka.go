//go:build !nodocker

package containers

// A Kafka in a container of the official image, or of an image that takes its settings from the environment in
// the same way.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/standings/standings/test/testenv"
)

// kafkaContainer is a Kafka in a box.
type kafkaContainer struct {
	*box
	image   *image
	cluster string
	version string
}

// newKafka starts a Kafka with settings that take precedence over the defaults. It tries other ports if
// another process took the first one. The context limits it.
func newKafka(ctx context.Context, of string, config map[string]string) (*kafkaContainer, error) {
	i, err := findImage(ctx, of)
	if err != nil {
		return nil, err
	}
	for {
		c := &kafkaContainer{image: i, cluster: testenv.ClusterID()}
		c.box, err = fill(ctx, i, 0, func(port int) contents { return c.contents(i.docker, port, config) })
		if err != nil {
			return nil, err
		}
		if err = c.start(ctx); err == nil {
			return c, nil
		}
		c.remove()
		if !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return nil, fmt.Errorf("start a Kafka in a container of %s: %w", i.name, err)
		}
	}
}

func (c *kafkaContainer) name() string {
	return fmt.Sprintf("Apache Kafka %s of %s", c.version, c.image.name)
}

// hostOfListener matches the host in SECURE://127.0.0.1:19093, and portOfListener the port.
var (
	hostOfListener = regexp.MustCompile(`://[^:,]*:`)
	portOfListener = regexp.MustCompile(`:(\d+)(?:,|$)`)
)

func (c *kafkaContainer) contents(d *docker, port int, config map[string]string) contents {
	var all contents
	own := maps.Clone(config)
	if listeners, ok := own["listeners"]; ok {
		own["listeners"] = hostOfListener.ReplaceAllString(listeners, "://0.0.0.0:")
		for _, port := range portOfListener.FindAllStringSubmatch(listeners, -1) {
			all.ports = append(all.ports, port[1])
		}
	}
	all.files = hostFiles(slices.Collect(maps.Values(config)))
	all.environment = map[string]string{
		"CLUSTER_ID":                 c.cluster,
		"KAFKA_HEAP_OPTS":            testenv.JavaOptions[0],
		"KAFKA_JVM_PERFORMANCE_OPTS": strings.Join(testenv.JavaOptions[1:], " "),
		"KAFKA_LOG4J_ROOT_LOGLEVEL":  "WARN",
	}
	settings := testenv.KafkaSettings("0.0.0.0", fmt.Sprintf("%s:%d", d.host, port), "127.0.0.1:9093", own)
	for key, value := range settings {
		all.environment[kafkaVariableOf(key)] = value
	}
	return all
}

// kafkaVariableOf returns the variable from which the official image reads a setting. The rule is in
// kafka.docker.KafkaDockerWrapper.
func kafkaVariableOf(setting string) string {
	return "KAFKA_" + strings.ToUpper(strings.NewReplacer(".", "_", "_", "__", "-", "___").Replace(setting))
}

func (c *kafkaContainer) start(ctx context.Context) error {
	return c.begin(ctx, func(ctx context.Context) error {
		id, version, err := testenv.IdentifyKafka(ctx, c.address())
		if err == nil && id != c.cluster {
			err = fmt.Errorf("another Kafka answers, of cluster %s", id)
		}
		c.version = version
		return err
	})
}
