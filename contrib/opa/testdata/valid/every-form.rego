# Every form of a decision.
package clef.edge

default decision := "origin"

decision := {"action": "block", "rule": "bots", "params": {"ttl_seconds": 60}} if {
	contains(input.headers["user-agent"], "bot")
	input.metrics.error_rate > 0.05
} else := "cache" if input.path == "/"
