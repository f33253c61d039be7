#!/usr/bin/env bash
# The uploader against a real S3 server: versitygw on loopback, with a directory as its
# store. The server is a tool, built outside the module graph; a second run takes it from
# the build cache. Everything it starts ends with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSITYGW=github.com/versity/versitygw/cmd/versitygw@v1.8.0
work=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

echo "building versitygw"
# A vendored or flagged environment of the caller must not reach another module's build.
(cd "$work" && GOFLAGS=-buildvcs=false GOWORK=off GOBIN="$work" go install "$VERSITYGW" >"$work/build" 2>&1) || { cat "$work/build"; exit 1; }

# Keys of a server that lives for this script.
key() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }
ROOT_ACCESS_KEY_ID=$(key)
ROOT_SECRET_ACCESS_KEY=$(key)
export ROOT_ACCESS_KEY_ID ROOT_SECRET_ACCESS_KEY
mkdir -p "$work/store/clefbench-test"

# A port that is free now may be taken a moment later: then the next is tried.
up=
for attempt in 1 2 3 4 5; do
  port=$((20000 + (RANDOM + attempt) % 20000))
  "$work/versitygw" --port "127.0.0.1:$port" posix "$work/store" >"$work/log" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    kill -0 "$server" 2>/dev/null || break
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      up=yes
      break
    fi
    sleep 0.1
  done
  # The port may answer because another has it; then ours has ended, or is about to.
  sleep 0.2
  if [ -n "$up" ] && kill -0 "$server" 2>/dev/null; then break; fi
  up=
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
done
[ -n "$up" ] || { echo "versitygw did not start"; cat "$work/log"; exit 1; }
echo "versitygw listens on 127.0.0.1:$port"

# No profile or credential of the machine takes part.
export AWS_ACCESS_KEY_ID=$ROOT_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY=$ROOT_SECRET_ACCESS_KEY
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3
export CLEFBENCH_S3_ENDPOINT=http://127.0.0.1:$port CLEFBENCH_S3_BUCKET=clefbench-test

go test -count=1 -timeout 200s -run 'S3' -v ./spool ./cmd/clefbench | tee "$work/out" | grep -v '^=== '
# Tests that were skipped or renamed must not pass for tests that ran.
[ "$(grep -c '^--- PASS: Test.*S3' "$work/out")" -ge 8 ] || { echo "fewer S3 tests ran than there are"; exit 1; }
! grep -q '^--- SKIP' "$work/out"
