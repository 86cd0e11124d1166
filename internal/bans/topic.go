package bans

import (
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
)

// Need returns the right required to read the bans.
func Need(topic string) kafkaconn.Right {
	return kafkaconn.Right{Operation: kafka.ACLOperationTypeRead, Topic: topic, For: "to know who is banned"}
}

// NeedToBan returns the right required in addition to ban members.
func NeedToBan(topic string) kafkaconn.Right {
	return kafkaconn.Right{Operation: kafka.ACLOperationTypeWrite, Topic: topic, For: "to ban"}
}

// Topic describes the bans topic.
func Topic(name string) kafkaconn.Compacted {
	return kafkaconn.Compacted{
		Topic: name, Loses: "deletes bans by their age", Or: ", or name another topic",
		Several: "it has to have one, so that bans have an order; name another topic, or delete this one and it is created",
	}
}
