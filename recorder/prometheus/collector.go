package recorderprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clefbench/clefbench/recorder/metrics"
)

// Collector implements [prometheus.Collector]. It is safe for concurrent use if its
// sources are, as those of this module are.
type Collector struct {
	sources metrics.Sources
	all     []metrics.Metric
	descs   []*prometheus.Desc
}

// New returns a collector over the sources, of which those that are nil stay silent.
func New(sources metrics.Sources) *Collector {
	c := &Collector{sources: sources, all: sources.Metrics()}
	for _, m := range c.all {
		var labels []string
		if m.Label != "" {
			labels = []string{m.Label}
		}
		c.descs = append(c.descs, prometheus.NewDesc(m.Name, m.Help, labels, nil))
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.sources.Read(func(i, label int, value float64) {
		m := &c.all[i]
		kind := prometheus.CounterValue
		if m.Kind == metrics.Gauge {
			kind = prometheus.GaugeValue
		}
		var labels []string
		if m.Label != "" {
			labels = []string{m.Values[label]}
		}
		ch <- prometheus.MustNewConstMetric(c.descs[i], kind, value, labels...)
	})
}
