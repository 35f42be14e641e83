"""What happens to pods whose placeholder Slurm has lost."""

from dataclasses import dataclass

from controllers.pods.breaker import Breaker
from controllers.pods.evidence import EvidenceLookup
from controllers.pods.restoring import Restorer


@dataclass(frozen=True, slots=True, kw_only=True)
class LossHandling:
    """The parts that handle the loss of placeholders."""

    breaker: Breaker
    """Holds evictions back if too many placeholders are lost at once."""
    lookup: EvidenceLookup
    """Finds out what became of a lost placeholder."""
    restorer: Restorer
    """Submits a lost placeholder again."""
