#!/bin/sh
# Runs a class of Kafka's. A quick start matters more here than the last tenth of speed.
set -eu
logging=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml}
# The jars of a Kafka before 4.0 have nothing that reads YAML.
if ! ls /opt/kafka/libs/jackson-dataformat-yaml-*.jar >/dev/null 2>&1; then
	logging=-Dlog4j2.configurationFile=/etc/kafka/docker/log4j2.properties
fi
# shellcheck disable=SC2086 # each of these holds several options
exec java ${KAFKA_HEAP_OPTS:--Xmx512m} \
	${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1} \
	-Dfile.encoding=UTF-8 $logging ${KAFKA_OPTS:-} -cp '/opt/kafka/libs/*' "$@"
