# One image for webhook, extender, controllers, leader and agent: the first argument is the program.
#
#   docker build --tag slurm-bridge .
#   docker run --rm slurm-bridge webhook --help
#
# The root file system may be read-only, and the user is nobody in particular. "make image" builds it without Docker.
# A package index or a certificate authority of your own: --secret id=pip.conf,src=… and --secret id=ca.crt,src=…, which pip.conf
# names as /run/secrets/ca.crt. The base needs Python with ensurepip, and a shell.
ARG BASE_IMAGE=python:3.13-slim

# What our programs need, by hash, in an environment without pip; and pip elsewhere, which stays behind.
FROM ${BASE_IMAGE} AS dependencies
COPY requirements.txt requirements-build.txt /
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt \
    python -m venv /opt/build \
 && python -m venv --without-pip /opt/venv \
 && INSTALL="install --no-cache-dir --no-compile --disable-pip-version-check --require-hashes --only-binary :all:" \
 && /opt/build/bin/pip $INSTALL --requirement /requirements-build.txt \
 && /opt/build/bin/pip --python /opt/venv/bin/python $INSTALL --requirement /requirements.txt

# Our own wheels, from this tree and never by name from an index.
FROM dependencies AS wheels
COPY . /src
RUN /opt/build/bin/pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /wheels /src /src/client /src/exporter

FROM wheels AS exporter-installed
RUN /opt/build/bin/pip --python /opt/venv/bin/python install --no-compile --no-index --no-deps \
        /wheels/slurm_client-*.whl /wheels/slurm_exporter-*.whl \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/venv

FROM wheels AS bridge-installed
RUN /opt/build/bin/pip --python /opt/venv/bin/python install --no-compile --no-index --no-deps \
        /wheels/slurm_client-*.whl /wheels/slurm_bridge-*.whl \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/venv

# Without pip inside: what runs cannot install anything. With compiled modules: it cannot keep what it compiles either.
FROM ${BASE_IMAGE} AS runtime
RUN python -c 'import sysconfig as s; print("\n".join(s.get_path(p) for p in ("stdlib", "purelib", "scripts")))' > /tmp/paths \
 && { read -r stdlib; read -r packages; read -r scripts; } < /tmp/paths \
 && rm -rf /tmp/paths "$stdlib/ensurepip" "$packages"/pip "$packages"/pip-* "$scripts"/pip* /usr/share/python-wheels \
 && python -m compileall -q --invalidation-mode unchecked-hash "$stdlib"
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532

# slurm-exporter, of which the bridge knows nothing: docker build --target exporter --tag slurm-exporter .
FROM runtime AS exporter
LABEL org.opencontainers.image.title="slurm-exporter" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=exporter-installed /opt/venv /opt/venv
EXPOSE 8080
ENTRYPOINT ["slurm-exporter"]

FROM runtime AS bridge
LABEL org.opencontainers.image.title="slurm-bridge" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=bridge-installed /opt/venv /opt/venv
EXPOSE 8080 8443
ENTRYPOINT ["python", "-m"]
CMD ["webhook", "--help"]
