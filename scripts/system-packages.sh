#!/usr/bin/env bash
# The Debian packages that the tests need: a browser for the report, its Chinese font, WordNet for METEOR.
set -euo pipefail
# The page's accessibility is checked by Deque's axe-core, where npm is at hand; without it that test is skipped.
if command -v npm >/dev/null && [ ! -e node_modules/axe-core ]; then
    npm install --no-save --no-package-lock --silent --prefix . axe-core@4.14.1 >/dev/null 2>&1 ||
        echo "note: npm could not install axe-core: the test that needs it will not run" >&2
fi
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
