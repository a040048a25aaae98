"""``python -m tensat`` is the command ``tensat``."""

from tensat.cli import main

main()
