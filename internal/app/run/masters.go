package run

// The master of each shard, for the metrics.

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/ranking/boards"
)

var shardInfo = prometheus.NewDesc("standings_shard_info",
	"1; the labels are a shard and its master (host:port), empty if unknown, as with Sentinels.", []string{"shard", "master"}, nil)

// masters exports the master of each shard, once the boards are known.
type masters struct{ boards atomic.Pointer[boards.Boards] }

// of sets the boards.
func (m *masters) of(all *boards.Boards) { m.boards.Store(all) }

// Describe sends the description.
func (m *masters) Describe(to chan<- *prometheus.Desc) { to <- shardInfo }

// Collect sends the metrics. The client answers from memory.
func (m *masters) Collect(to chan<- prometheus.Metric) {
	all := m.boards.Load()
	if all == nil {
		return
	}
	for i, shard := range all.Shards() {
		to <- gauge(shardInfo, 1, strconv.Itoa(i), shard.Addr())
	}
}
