"""`python -m extraction`."""

from extraction.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
