"""A Dockerfile, read."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self


@dataclass(slots=True)
class BuildStage:
    """A FROM and what follows."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """The arguments of every such instruction."""
        return [arguments for name, arguments in self.instructions if name == instruction]


@dataclass(slots=True)
class Dockerfile:
    """Its stages by name."""

    beginning: list[tuple[str, str]] = field(default_factory=list)
    """What stands before the first FROM."""
    stages: dict[str, BuildStage] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a file; every stage in it has a name."""
        found = cls()
        text = re.sub(r"^ *#.*\n", "", file.read_text(), flags=re.MULTILINE)
        into = found.beginning
        for line in re.sub(r"\\\n\s*", "", text).splitlines():
            instruction, _, arguments = line.partition(" ")
            if instruction == "FROM":
                base, name = arguments.split(" AS ")
                found.stages[name] = BuildStage(base=base)
                into = found.stages[name].instructions
            elif instruction:
                into.append((instruction, arguments))
        return found

    @property
    def arguments(self) -> set[str]:
        """The names of all build arguments."""
        each = [self.beginning, *(stage.instructions for stage in self.stages.values())]
        declared = [text for part in each for name, text in part if name == "ARG"]
        return {text.partition("=")[0] for text in declared}

    @property
    def taken(self) -> set[str]:
        """What is copied or mounted from the context."""
        found = set()
        for stage in self.stages.values():
            for copied in stage.all("COPY"):
                *sources, _target = copied.split()
                found |= {source for source in sources if not copied.startswith("--from=")}
            for run in stage.all("RUN"):
                for mount in re.findall(r"--mount=(type=bind\S+)", run):
                    options = dict(option.split("=", 1) for option in mount.split(","))
                    if "from" not in options:
                        found.add(options["source"])
        return found
