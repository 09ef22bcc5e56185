"""`python -m schemactl`."""

import sys

from schemactl.cli import main

sys.exit(main())
