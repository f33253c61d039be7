module github.com/clefbench/clefbench/contrib/models

go 1.26.0

require (
	github.com/clefbench/clefbench v0.0.0
	github.com/dmitryikh/leaves v0.0.0-20230708180554-25d19a787328
)

require go.yaml.in/yaml/v4 v4.0.0 // indirect

replace github.com/clefbench/clefbench => ../..
