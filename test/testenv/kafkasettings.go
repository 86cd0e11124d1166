package testenv

// The settings of a Kafka for tests, whatever it runs in.

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
)

// KafkaVersion is the one that tests run on where nothing else is asked for, and
// that scripts/kafka-jars installs (test/kafka/pom.xml).
const KafkaVersion = "4.2.0"

// wantedKafka is the version that tests run on.
func wantedKafka() string { return cmp.Or(os.Getenv(KafkaVersionVariable), KafkaVersion) }

// KafkaSettings are those of a node that is broker and controller, and keeps nothing
// on other nodes. It listens on the port of address, where clients find it, of the
// interface listen. Few partitions of its own topics make it quick. The test's own
// settings go before these.
func KafkaSettings(listen, address, controller string, own map[string]string) map[string]string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // we have made it
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

// listenerKeys are settings that are added to and not replaced: who starts the
// broker asks it by its own listener.
var listenerKeys = []string{"listeners", "advertised.listeners", "listener.security.protocol.map"}

// ClusterID is a random one, by which a node is told from another's on its port.
func ClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f           // Kafka's tools take a leading "-" for an option
	return base64.RawURLEncoding.EncodeToString(id[:])
}
