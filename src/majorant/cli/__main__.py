"""Entry point of ``python -m majorant.cli``, the same as ``majorant``."""

from majorant.cli import main

raise SystemExit(main())
