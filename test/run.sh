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
PASSED=0 FAILED=0
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT

packages() {
  local missing=()
  for p in "$@"; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p"); done
  [ ${#missing[@]} = 0 ] && return
  echo "installing ${missing[*]}"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# One check: counts as one test, prints its end when it fails.
step() {
  local name=$1; shift
  local start=$SECONDS log=$RESULTS/step.log
  if "$@" >"$log" 2>&1; then
    PASSED=$((PASSED + 1)); echo "ok    $name ($((SECONDS - start)) s)"
  else
    FAILED=$((FAILED + 1)); echo "FAIL  $name ($((SECONDS - start)) s)"; tail -n 60 "$log"
  fi
}

# A vitest run: its tests are counted one by one.
suite() {
  local name=$1; shift
  local start=$SECONDS json=$RESULTS/$RANDOM.json log=$RESULTS/suite.log
  node_modules/.bin/bun --bun node_modules/.bin/vitest run --reporter=default --reporter=json --outputFile.json="$json" "$@" >"$log" 2>&1
  local code=$? counts
  counts=$(node_modules/.bin/bun -e 'const r = JSON.parse(await Bun.file(process.argv[1]).text()); console.log(r.numPassedTests, r.numFailedTests + (r.numFailedTests === 0 && !r.success ? 1 : 0))' "$json" 2>/dev/null) || counts="0 1"
  PASSED=$((PASSED + ${counts% *})); FAILED=$((FAILED + ${counts#* }))
  echo "$([ "${counts#* }" = 0 ] && echo ok || echo FAIL)    $name: ${counts% *} passed, ${counts#* } failed ($((SECONDS - start)) s)"
  [ "$code" = 0 ] || grep -vE '^\s*$|✓' "$log" | tail -n 150
}

command -v node >/dev/null && command -v npm >/dev/null || packages nodejs npm
packages ca-certificates curl openssl g++ make python3 xz-utils zstd iproute2 nftables procps util-linux debian-archive-keyring
[ -d node_modules/bun ] && [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --loglevel=error || exit 1

step "build" npm run --silent build
step "types" node_modules/.bin/tsc -p .
step "lint" node_modules/.bin/biome check --diagnostic-level=error .
step "etcd, for tests only" node_modules/.bin/bun test/etcd.ts
step "golden files, for tests only" node_modules/.bin/bun test/goldens/goldens.ts
suite "unit, contract and scenario tests"
step "20 kills at random moments lose nothing" node_modules/.bin/bun test/crash/kill9.ts --kills 20 --seed 1
if [ -z "${QUICK:-}" ]; then
  step "test images" node_modules/.bin/bun test/images/build.ts dist/test-images
  suite "cluster on the compiled binary" --config test/cluster/vitest.config.ts
fi
[ -n "${QUICK:-}${SKIP_PLATFORMS:-}" ] || suite "arm64 under qemu, Windows under wine" --config test/platforms/vitest.config.ts
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
