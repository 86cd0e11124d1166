package testenv

// The settings of a Kafka for tests, as a process or in a container.

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
)

// KafkaVersion is the default version. scripts/kafka-jars installs it (test/kafka/pom.xml).
const KafkaVersion = "4.2.0"

// wantedKafka returns the version that tests run on.
func wantedKafka() string { return cmp.Or(os.Getenv(KafkaVersionVariable), KafkaVersion) }

// KafkaSettings returns the settings of a single node that is both broker and controller. The node listens
// on the interface listen, on the port of address; clients connect to address. Its internal topics have few
// partitions, which makes it start quickly. The test's own settings take precedence.
func KafkaSettings(listen, address, controller string, own map[string]string) map[string]string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // address was built by the caller
	}
	all := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.voters":                         "1@" + controller,
		"controller.listener.names":                        "CONTROLLER",
		"listeners":                                        fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://%s", net.JoinHostPort(listen, port), controller),
		"advertised.listeners":                             "PLAINTEXT://" + address,
		"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"auto.create.topics.enable":                        "false",
		"offsets.topic.num.partitions":                     "4",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.num.partitions":             "4",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"group.min.session.timeout.ms":                     "1000",
	}
	for key, value := range own {
		if slices.Contains(listenerKeys, key) {
			value = all[key] + "," + value
		}
		all[key] = value
	}
	return all
}

// listenerKeys are settings whose values are appended to the defaults, since the code that starts the broker
// connects to the default listener.
var listenerKeys = []string{"listeners", "advertised.listeners", "listener.security.protocol.map"}

// ClusterID returns a random cluster id, which distinguishes a node from another one on the same port.
func ClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f           // Kafka's tools take a leading "-" for an option
	return base64.RawURLEncoding.EncodeToString(id[:])
}
