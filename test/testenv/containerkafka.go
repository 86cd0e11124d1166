package testenv

// A Kafka in a container of the official image, or of one that takes its settings
// from the environment in the same way.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// kafkaContainer is a Kafka in a box.
type kafkaContainer struct {
	*box
	cluster string
	version string
}

func containerKafka(ctx context.Context) (*KafkaServer, error) { return newKafkaContainer(ctx, nil) }

func findKafkaImage(ctx context.Context) (*image, error) {
	if err := instead(KafkaImageVariable, KafkaJarsVariable, "containers"); err != nil {
		return nil, err
	}
	return findImage(ctx, KafkaImageVariable, "apache/kafka:"+wantedKafka())
}

// newKafkaContainer starts a Kafka with settings besides or instead of its own, and
// tries other ports where somebody was quicker.
func newKafkaContainer(ctx context.Context, config map[string]string) (*KafkaServer, error) {
	i, err := findKafkaImage(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kafkaStart)
	defer cancel()
	for {
		c := &kafkaContainer{cluster: clusterID()}
		c.box, err = fill(ctx, i, 0, func(port int) contents { return c.contents(i.docker, port, config) })
		if err != nil {
			return nil, err
		}
		if err = c.start(ctx); err == nil {
			name := fmt.Sprintf("Apache Kafka %s of %s", c.version, i.name)
			k := newKafka(c.address(), name, Container, c.remove)
			k.private = c
			return k, nil
		}
		c.remove()
		if !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return nil, fmt.Errorf("start a Kafka in a container of %s: %w", i.name, err)
		}
	}
}

// hostOfListener is the host in SECURE://127.0.0.1:19093, and portOfListener the port.
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
		"KAFKA_HEAP_OPTS":            javaOptions[0],
		"KAFKA_JVM_PERFORMANCE_OPTS": strings.Join(javaOptions[1:], " "),
		"KAFKA_LOG4J_ROOT_LOGLEVEL":  "WARN",
	}
	settings := kafkaSettings("0.0.0.0", fmt.Sprintf("%s:%d", d.host, port), "127.0.0.1:9093", own)
	for key, value := range settings {
		all.environment[kafkaVariableOf(key)] = value
	}
	return all
}

// kafkaVariableOf is the variable that the official image reads a setting from:
// kafka.docker.KafkaDockerWrapper says how.
func kafkaVariableOf(setting string) string {
	return "KAFKA_" + strings.ToUpper(strings.NewReplacer(".", "_", "_", "__", "-", "___").Replace(setting))
}

func (c *kafkaContainer) start(ctx context.Context) error {
	return c.begin(ctx, func(ctx context.Context) error {
		id, version, err := identify(ctx, c.address())
		if err == nil && id != c.cluster {
			err = fmt.Errorf("another Kafka answers, of cluster %s", id)
		}
		c.version = version
		return err
	})
}
