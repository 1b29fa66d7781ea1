# For local weights with vLLM on NVIDIA GPUs.
#   docker build -f docker/gpu.Dockerfile -t qilin-tasks:gpu .
#   docker run --rm --gpus all --ipc host -v "$HOME/.cache/huggingface:/home/runner/.cache/huggingface" -v "$PWD/runs:/runs" \
#     qilin-tasks:gpu compare --model vllm:Qwen/Qwen2.5-7B-Instruct --tasks qilin_dqa --out /runs
FROM nvidia/cuda:12.8.1-devel-ubuntu24.04

RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3=3.12.* python3-venv=3.12.* python3-dev=3.12.* \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY qilin_tasks ./qilin_tasks
COPY lm_eval_tasks ./lm_eval_tasks
# The checkout itself, at its own versions.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".[vllm,api,bertscore,report]" && useradd --uid 10001 --create-home runner

USER 10001
WORKDIR /home/runner
ENTRYPOINT ["qilin-tasks"]
CMD ["--help"]
