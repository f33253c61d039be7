// Package recorderprom shows a recording to Prometheus: the figures of package
// recorder/metrics as a prometheus.Collector.
//
// Steps:
//
//  1. [New] a collector over the recorder and, where there are any, its segments and
//     uploads.
//  2. Register it. Several recorders of a process need a label each:
//     prometheus.WrapRegistererWith.
//
// Every scrape reads the counts that the recorder keeps anyway; between scrapes nothing is
// done. Label sets are closed and small. deploy/grafana has a dashboard over the names.
package recorderprom
