"""`python -m rulesets`."""

from rulesets.cli import main

main()
