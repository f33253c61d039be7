#!/usr/bin/env bash
# Builds, vets and tests every nested module under contrib/ at the versions of its own go.mod,
# whatever go.work says: that is for editors. That go.mod is tidy is not asked: it is not
# whenever a test of the root module, which nothing here runs, gains a dependency.
# CONTRIB_ALL=1 takes those along that take minutes to compile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off

heavy=" contrib/opa contrib/peers/opa "
n=0
while IFS= read -r mod; do
  dir=${mod%/go.mod}
  if [[ $heavy == *" $dir "* && -z ${CONTRIB_ALL:-} ]]; then
    echo "$dir: left out, takes minutes to compile (CONTRIB_ALL=1)"
    continue
  fi
  start=$SECONDS
  (
    cd "$dir"
    go build ./...
    go vet ./...
    go test -short ./...
  )
  n=$((n + 1))
  echo "-- $dir: $((SECONDS - start)) s"
done < <(git ls-files 'contrib/*/go.mod' 'contrib/**/go.mod' | sort -u)
# A loop over nothing would pass for good.
[ "$n" -ge 1 ] || { echo "no nested module was found"; exit 1; }
