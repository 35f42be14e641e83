"""Every reader of others' text."""

from typing import Final

from tests.fuzz.readers import of_bodies, of_files, of_jobs, of_pods, of_slurm
from tests.fuzz.readers.reader import Reader

READERS: Final[tuple[Reader, ...]] = (
    *of_pods.READERS,
    *of_bodies.READERS,
    *of_slurm.READERS,
    *of_jobs.READERS,
    *of_files.READERS,
)
