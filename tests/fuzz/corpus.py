"""Inputs that once broke a reader, or nearly: one file each, in a folder for each reader."""

from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.readers.reader import Reader

FOLDER = Path(__file__).parent / "corpus"


def folder(reader: Reader) -> Path:
    """Return the folder of a reader's inputs."""
    return FOLDER / reader.name.replace(":", "-")


def inputs(reader: Reader) -> Iterator[str]:
    """Yield the inputs of a reader."""
    for path in sorted(folder(reader).glob("*.txt")):
        yield path.read_bytes().decode(errors="surrogatepass")
