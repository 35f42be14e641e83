"""`python -m generate 42.json 43.json 44.json 45.json`, in `dev/`."""

import sys
from pathlib import Path

from generate.files import PACKAGE, generate, read_documents

for name, source in generate(read_documents([Path(path) for path in sys.argv[1:]])).items():
    (PACKAGE / name).write_text(source)
