# syntax=docker/dockerfile:1
# The code and the versions of constraints.txt, for work pools of type docker and kubernetes: deployments/README.md.
#
#     docker build --tag rsr:latest .
#
# For machines without GPU, name the index with PyTorch's builds for CPU, or 3 GB of CUDA come along:
#
#     docker build --build-arg TORCH_INDEX=ADDRESS --tag rsr:latest .
FROM python:3.11-slim-bookworm AS build
ARG EXTRAS=hdf5,ros,s3,scale
ARG TORCH_INDEX
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /opt/rsr
COPY LICENSE README.md constraints.txt pyproject.toml setup.py ./
COPY rsr ./rsr
COPY tasks ./tasks
COPY flows ./flows
COPY deployments ./deployments
RUN pip install --constraint constraints.txt ${TORCH_INDEX:+--extra-index-url "${TORCH_INDEX}"} ".[${EXTRAS}]"

FROM python:3.11-slim-bookworm
# git: campaigns are repositories. libegl1, libgl1: pictures of simulations, drawn without a screen.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git libegl1 libgl1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home rsr \
    && install --directory --owner rsr --group rsr /campaigns
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/rsr/deployments/containers/health.py /opt/rsr/health.py
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MUJOCO_GL=egl \
    MPLCONFIGDIR=/tmp/matplotlib \
    PREFECT_HOME=/home/rsr/.prefect \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    PREFECT_WORKER_WEBSERVER_HOST=127.0.0.1 \
    DO_NOT_TRACK=1 \
    DVC_NO_ANALYTICS=1
USER 10001:10001
WORKDIR /campaigns
VOLUME /campaigns
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["python", "/opt/rsr/health.py"]
# A work pool puts its own command here; by itself the image is a worker, which asks the server for work.
CMD ["prefect", "worker", "start", "--pool", "rsr", "--type", "process", "--with-healthcheck"]
