"""A separate program for `signature`.

Its library pysequoia comes from a wheel that only this process has on its path.

Reads a clear-signed text from standard input and keys from the named file; writes the text to
standard output and the fingerprints of the keys with a good signature to standard error. Without
one it fails with a traceback.
"""

import sys

from pysequoia import (  # type: ignore[import-not-found]  # from the wheel, see above
    Cert,
    verify,
)


def main() -> None:
    """Verify."""
    certificates = Cert.split_file(sys.argv[1])
    verified = verify(sys.stdin.buffer.read(), store=lambda _: list(certificates))
    sys.stdout.buffer.write(verified.bytes)
    sys.stderr.write("\n".join(good.certificate.upper() for good in verified.valid_sigs))


if __name__ == "__main__":
    main()
