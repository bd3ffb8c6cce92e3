#!/usr/bin/env bash
# Installs the system parts that some tests use (PostgreSQL, a Chromium), only what is missing, where it may.
# It never fails: a test whose part is missing says so itself and is skipped.
set -u
missing=()
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing+=(postgresql)
found=
for browser in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$browser" >/dev/null && found=yes
done
[ -n "$found" ] || missing+=(chromium)

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "System parts that some tests use are missing: ${missing[*]}. Those tests are skipped; install the parts to run them."
  exit 0
fi
echo "Installing system parts that some tests use: ${missing[*]} ..."
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! apt-get update -qq >"$log" 2>&1; then
  echo "The list of system packages could not be refreshed ($(tail -n 1 "$log")); trying with the present one."
fi
for part in "${missing[@]}"; do  # one by one: a part that is not to be had must not cost the other
  if ! apt-get install -y -qq --no-install-recommends "$part" >"$log" 2>&1; then
    echo "$part could not be installed ($(tail -n 1 "$log")). The tests that use it are skipped."
  fi
done
rm -f "$log"
exit 0
