"""`python -m inferspec`, where the script is not on the path."""

from inferspec.tools.cli import main

raise SystemExit(main())
