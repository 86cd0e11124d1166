#!/bin/sh
set -eu
export KAFKA_LOG4J_OPTS="${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml}"
exec /opt/kafka/bin/kafka-run-class.sh kafka.Kafka "$@"
