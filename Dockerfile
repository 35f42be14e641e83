# One image for webhook, extender and controllers: the first argument is the program.
#
#   docker build --tag slurm-bridge .
#   docker run --rm slurm-bridge webhook --help
#
# The root file system may be read-only, and the user is nobody in particular.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS dependencies
COPY requirements.txt /
# Without pip inside: what runs cannot install anything.
RUN python -m venv --without-pip /opt/venv \
 && pip --python /opt/venv/bin/python install --no-cache-dir --disable-pip-version-check \
        --require-hashes --only-binary :all: --requirement /requirements.txt

# slurm-exporter, of which the bridge knows nothing: docker build --target exporter --tag slurm-exporter .
FROM ${BASE_IMAGE} AS exporter
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=dependencies /opt/venv /opt/venv
WORKDIR /app
COPY exporter/LICENSE ./
COPY client/slurmclient slurmclient
COPY exporter/slurmexporter slurmexporter
RUN python -m compileall -q .
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "slurmexporter"]

FROM ${BASE_IMAGE}
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=dependencies /opt/venv /opt/venv
WORKDIR /app
COPY LICENSE ./
COPY bridge bridge
COPY client/slurmclient slurmclient
COPY webhook webhook
COPY extender extender
COPY controllers controllers
RUN python -m compileall -q .
USER 65532:65532
EXPOSE 8080 8443
ENTRYPOINT ["python", "-m"]
CMD ["webhook", "--help"]
