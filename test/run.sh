#!/bin/bash
# Installs what the tests need on a Debian machine, and passes them all. Needs root: clusters run on machines made of namespaces.
#
#   sh test/run.sh            everything, as CI does
#   QUICK=1 sh test/run.sh    without the cluster on the compiled binary, and without emulators
#   SKIP_PLATFORMS=1          without emulators (test/platforms)
#
# The last line counts: N passed, N failed.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -u
cd "$(dirname "$0")/.." || exit 1
export DEBIAN_FRONTEND=noninteractive
export LAB=${LAB:-/tmp/coracle-lab}
RESULTS=$(mktemp -d)
set -m # what begins in the background is a group of processes, and ends as one

# However this ends: nothing that it has begun goes on.
tidy() {
  local code=$? groups lab
  trap '' INT TERM
  groups=$(jobs -p | sed 's/^/-/')
  [ -z "$groups" ] || { kill -TERM -- $groups; sleep 3; kill -KILL -- $groups; } 2>/dev/null
  wait
  for lab in "$LAB"*/; do [ -d "$lab" ] && LAB=${lab%/} bash test/cluster/host.sh sweep; done
  rm -rf "$RESULTS"
  exit "$code"
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

packages() {
  local missing=()
  for p in "$@"; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p"); done
  [ ${#missing[@]} = 0 ] && return
  echo "installing ${missing[*]}"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# A step and a suite begin at once, beside what has begun before; after `wait` all of them have ended. Each leaves a line "passed failed".

# One check: counts as one test, prints its end when it fails.
step() { one_step "$@" </dev/null & }
one_step() {
  local name=$1; shift
  local start=$SECONDS log=$RESULTS/$BASHPID.log
  echo "0 1" >"$RESULTS/$BASHPID.count" # until it has ended: one that was killed has failed
  if "$@" >"$log" 2>&1; then
    echo "1 0" >"$RESULTS/$BASHPID.count"; echo "ok    $name ($((SECONDS - start)) s)"
  else
    echo "0 1" >"$RESULTS/$BASHPID.count"; echo "FAIL  $name ($((SECONDS - start)) s)"; tail -n 60 "$log"
  fi
}

# A vitest run: its tests are counted one by one. One that hangs ends, and is told with how far it came.
LIMIT_S=2400
suite() { one_suite "$@" </dev/null & }
one_suite() {
  local name=$1; shift
  local start=$SECONDS json=$RESULTS/$BASHPID.json log=$RESULTS/$BASHPID.log code counts runner
  echo "0 1" >"$RESULTS/$BASHPID.count"
  unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy # tests ask nobody but this machine, at addresses that no proxy knows
  timeout --foreground --kill-after=60 "$LIMIT_S" node_modules/.bin/bun --bun node_modules/.bin/vitest run --reporter=verbose --reporter=json --outputFile.json="$json" "$@" >"$log" 2>&1 &
  runner=$!
  while kill -0 "$runner" 2>/dev/null && [ ! -s "$json" ]; do sleep 1; done
  for _ in $(seq 60); do kill -0 "$runner" 2>/dev/null || break; sleep 1; done
  if kill "$runner" 2>/dev/null; then wait "$runner"; code=0; echo "      $name: the results are there, but vitest did not end; it has been ended"; else wait "$runner"; code=$?; fi
  counts=$(node_modules/.bin/bun -e 'const r = JSON.parse(await Bun.file(process.argv[1]).text()); console.log(r.numPassedTests, Math.max(r.numFailedTests, Number(!r.success || process.argv[2] !== "0")))' "$json" "$code" 2>/dev/null) || counts="0 1"
  echo "$counts" >"$RESULTS/$BASHPID.count"
  echo "$([ "${counts#* }" = 0 ] && echo ok || echo FAIL)    $name: ${counts% *} passed, ${counts#* } failed ($((SECONDS - start)) s)"
  [ "${counts#* }" = 0 ] && return
  case $code in 124 | 137) echo "no end after $LIMIT_S s; what ended last:"; tail -n 60 "$log" ;; esac
  grep -vE '^\s*$|✓' "$log" | tail -n 150
}

# What clusters and emulators take from Debian, one after another: two at a time would be in each other's way.
fetch() {
  $BUN test/images/build.ts dist/test-images && $BUN test/cluster/debian-runtime.ts bookworm trixie && { [ -n "${SKIP_PLATFORMS:-}" ] || $BUN test/platforms/debian.ts; }
}

command -v node >/dev/null && command -v npm >/dev/null || packages nodejs npm
packages ca-certificates curl openssl g++ make python3 xz-utils zstd iproute2 nftables procps shellcheck util-linux debian-archive-keyring
[ -d node_modules/bun ] && [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --loglevel=error || exit 1

BUN=node_modules/.bin/bun
step "build" npm run --silent build
step "types" node_modules/.bin/tsc -p .
wait
step "lint" node_modules/.bin/biome check --diagnostic-level=error .
step "etcd, for tests only" $BUN test/etcd.ts
step "golden files, for tests only" $BUN test/goldens/goldens.ts
wait
suite "unit, contract and scenario tests"
wait
step "20 kills at random moments lose nothing" $BUN test/crash/kill9.ts --kills 20 --seed 1
[ -n "${QUICK:-}" ] || step "images, runtimes and emulators, for tests only" fetch
wait
[ -n "${QUICK:-}" ] || suite "cluster on the compiled binary" --config test/cluster/vitest.config.ts
[ -n "${QUICK:-}${SKIP_PLATFORMS:-}" ] || suite "arm64 under qemu, Windows under wine" --config test/platforms/vitest.config.ts
wait

read -r PASSED FAILED < <(cat "$RESULTS"/*.count | awk '{ passed += $1; failed += $2 } END { print passed, failed }')
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
