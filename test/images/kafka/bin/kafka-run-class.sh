#!/bin/sh
# Runs a class of Kafka's. A quick start matters more here than the last tenth of speed.
set -eu
logging=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml}
exec java ${KAFKA_HEAP_OPTS:--Xmx512m} \
	${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1} \
	-Dfile.encoding=UTF-8 $logging ${KAFKA_OPTS:-} -cp '/opt/kafka/libs/*' "$@"
