"""Container images, ours and Slurm's, built from their Dockerfiles without Docker, a registry or a daemon.

buildah, from Debian's packages, runs a Dockerfile's steps in namespaces of its own; the bases are
made from Debian's packages, too. The result is an archive in OCI's layout, which containerd, Docker and
skopeo read.
"""
