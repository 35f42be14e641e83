"""Our container images, built from the Dockerfile without Docker, a registry or a daemon.

buildah, from Debian's packages, runs the Dockerfile's steps in namespaces of its own; the base is
made from Debian's packages, too. The result is what containerd, Docker and skopeo read: an archive
in OCI's layout.
"""
