#!/usr/bin/env bash
# The Debian packages that the tests need: a browser for the report, its Chinese font, WordNet for METEOR.
set -euo pipefail
missing=()
for package in chromium chromium-driver fonts-wqy-microhei wordnet; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "== apt-get install ${missing[*]} (about 120 MB when all are missing)"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
else
    echo "note: the tests that need ${missing[*]} will not run; on Debian: sudo apt-get install ${missing[*]}" >&2
fi
