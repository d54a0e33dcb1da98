"""``python -m majorant.cli`` does what ``majorant`` does."""

from majorant.cli import main

raise SystemExit(main())
