# For models behind an API: no torch.
#   docker build -f docker/api.Dockerfile -t qilin-tasks:api .
#   docker run --rm -e QILIN_DATA=sample -e OPENAI_API_KEY -v "$PWD/runs:/runs" qilin-tasks:api \
#     compare --model local-chat-completions:NAME,base_url=URL --tasks qilin_dqa --metadata bertscore=off --out /runs
FROM python:3.12-slim

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY qilin_tasks ./qilin_tasks
COPY lm_eval_tasks ./lm_eval_tasks
# The checkout itself, at its own versions.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".[api,report]" && useradd --uid 10001 --create-home runner

USER 10001
WORKDIR /home/runner
ENTRYPOINT ["qilin-tasks"]
CMD ["--help"]
